package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/store"
)

// artifacts serves and removes the files that runs leave.
type artifacts struct {
	*directory
	hosts *hosts // nil without a service
}

// A file that a run left belongs to the run's timeline and is deleted with it. The timeline goes first, so that
// after a crash in between the file is found at the next start.

var _ host.Artifacts = (*artifacts)(nil)

// traces returns the directory of browser traces.
func (as *artifacts) traces() string {
	if as.DataDir == "" {
		return browser.Traces(as.temp)
	}
	return browser.Traces(as.DataDir)
}

// OpenArtifact opens the artifact of a run, of a type that the host itself makes. The error is store.ErrNotFound
// if there is none, or none any more, and a refusal that leads to the host that performed the run if that is
// another one.
func (as *artifacts) OpenArtifact(ctx context.Context, id store.RunID,
	artifactType string) (content io.ReadSeekCloser, size int64, err error) {
	if artifactType != browser.TraceArtifact {
		return nil, 0, store.ErrNotFound
	}
	f, err := browser.OpenTrace(as.traces(), string(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, as.missing(ctx, id)
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

// ArtifactSize returns the size of an artifact in bytes. The errors are those of OpenArtifact.
func (as *artifacts) ArtifactSize(ctx context.Context, id store.RunID, artifactType string) (int64, error) {
	if artifactType != browser.TraceArtifact {
		return 0, store.ErrNotFound
	}
	fi, err := browser.StatTrace(as.traces(), string(id))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, as.missing(ctx, id)
	}
	if err != nil {
		return 0, fmt.Errorf("look for trace of %s: %w", id, err)
	}
	return fi.Size(), nil
}

// missing returns the error about a trace that is not here.
func (as *artifacts) missing(ctx context.Context, id store.RunID) error {
	if err := as.hosts.awayFrom(ctx, id, "the browser trace of this run"); err != nil {
		return err
	}
	return store.ErrNotFound
}

// forgetTraces removes the traces of a connection's runs.
func (as *artifacts) forgetTraces(ctx context.Context, id store.ConnectionID) error {
	return as.removeTraces(ctx, func(r store.Run) bool { return r.ConnectionID == id })
}

// sweepTraces removes traces that an earlier host left unfinished, and those of runs whose timeline is gone.
func (as *artifacts) sweepTraces(ctx context.Context) error {
	if _, err := os.Stat(as.traces()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(browser.SweepTraces(as.traces()), as.removeTraces(ctx, func(r store.Run) bool { return r.Pruned }))
}

// removeTraces removes the traces of unknown runs and of those for which gone returns true.
func (as *artifacts) removeTraces(ctx context.Context, gone func(store.Run) bool) error {
	for id, err := range browser.TracedRuns(as.traces()) {
		if err != nil {
			return fmt.Errorf("list traces: %w", err)
		}
		r, err := as.Store.Run(ctx, store.RunID(id))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("read run %s: %w", abi.Cut(abi.Clean(id), 80), err)
		}
		if err == nil && !gone(r) {
			continue
		}
		if err := as.removeTrace(store.RunID(id)); err != nil {
			return err
		}
	}
	return nil
}

func (as *artifacts) removeTrace(id store.RunID) error {
	if err := browser.RemoveTrace(as.traces(), string(id)); err != nil {
		return fmt.Errorf("remove trace of %s: %w", abi.Cut(abi.Clean(string(id)), 80), err)
	}
	return nil
}

// A traceUsage sums up the browser traces of a data directory.
type traceUsage struct {
	dir    string
	count  int
	bytes  int64
	oldest time.Time
}

func traceUsageOf(data string) (u traceUsage, err error) {
	u.dir = browser.Traces(data)
	for run, err := range browser.TracedRuns(u.dir) {
		var fi fs.FileInfo
		if err == nil {
			fi, err = browser.StatTrace(u.dir, run)
		}
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			continue
		}
		if err != nil {
			return u, err
		}
		u.count++
		u.bytes += fi.Size()
		if at := fi.ModTime(); u.oldest.IsZero() || at.Before(u.oldest) {
			u.oldest = at
		}
	}
	return u, nil
}
