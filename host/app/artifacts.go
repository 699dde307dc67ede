package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/store"
)

// A file that a run left belongs to its timeline, which says what it is: it goes
// with that (§20.5), or with all that was collected (A185). The timeline goes first,
// so that what is left of a crash in between is found at the next start.

var _ host.Artifacts = (*Host)(nil)

// traces is the directory of browser traces.
func (h *Host) traces() string {
	if h.DataDir == "" {
		return browser.Traces(h.temp)
	}
	return browser.Traces(h.DataDir)
}

// OpenArtifact opens the file of an artifact of a run, of a type that the host makes
// itself: store.ErrNotFound when there is none, or none any more.
func (h *Host) OpenArtifact(_ context.Context, id store.RunID, artifactType string) (content io.ReadSeekCloser, size int64, err error) {
	if artifactType != browser.TraceArtifact {
		return nil, 0, store.ErrNotFound
	}
	f, err := browser.OpenTrace(h.traces(), string(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, store.ErrNotFound
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open trace of %s: %w", id, err)
	}
	fi, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open trace of %s: %w", id, err), f.Close())
	}
	return f, fi.Size(), nil
}

// ArtifactSize is the length of the file of an artifact: store.ErrNotFound like
// OpenArtifact.
func (h *Host) ArtifactSize(_ context.Context, id store.RunID, artifactType string) (int64, error) {
	if artifactType != browser.TraceArtifact {
		return 0, store.ErrNotFound
	}
	fi, err := browser.StatTrace(h.traces(), string(id))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, store.ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("look for trace of %s: %w", id, err)
	}
	return fi.Size(), nil
}

// forgetTraces removes the traces of a connection's runs (A185).
func (h *Host) forgetTraces(ctx context.Context, id store.ConnectionID) error {
	return h.removeTraces(ctx, func(r store.Run) bool { return r.ConnectionID == id })
}

// sweepTraces removes what an earlier host left of traces that it was writing, and
// those of runs whose timeline is gone.
func (h *Host) sweepTraces(ctx context.Context) error {
	if _, err := os.Stat(h.traces()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(browser.SweepTraces(h.traces()), h.removeTraces(ctx, func(r store.Run) bool { return r.Pruned }))
}

// removeTraces removes those of runs that are not known, and where gone says so.
func (h *Host) removeTraces(ctx context.Context, gone func(store.Run) bool) error {
	for id, err := range browser.TracedRuns(h.traces()) {
		if err != nil {
			return fmt.Errorf("list traces: %w", err)
		}
		r, err := h.Store.Run(ctx, store.RunID(id))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("read run %s: %w", abi.Cut(abi.Clean(id), 80), err)
		}
		if err == nil && !gone(r) {
			continue
		}
		if err := browser.RemoveTrace(h.traces(), id); err != nil {
			return fmt.Errorf("remove trace of %s: %w", abi.Cut(abi.Clean(id), 80), err)
		}
	}
	return nil
}

var _ host.Artifacts = (*Service)(nil)

// OpenArtifact implements host.Artifacts.
func (s *Service) OpenArtifact(ctx context.Context, id store.RunID, artifactType string) (io.ReadSeekCloser, int64, error) {
	return s.host.OpenArtifact(ctx, id, artifactType)
}

// ArtifactSize implements host.Artifacts.
func (s *Service) ArtifactSize(ctx context.Context, id store.RunID, artifactType string) (int64, error) {
	return s.host.ArtifactSize(ctx, id, artifactType)
}
