package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// sinks are the places a run's events and records go to besides the store.
type sinks struct {
	timeline *os.File
	err      error
	progress *progress
	events   int
	export   *exporter
}

func (c *command) openSinks(f *runFlags, m *abi.Manifest) (*sinks, error) {
	s := &sinks{progress: c.newProgress(m)}
	var err error
	if f.timeline != "" {
		if s.timeline, err = os.Create(f.timeline); err != nil {
			return nil, usagef("--timeline: %w", err)
		}
	}
	if f.out != "" {
		if s.export, err = newExporter(f.out); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// event takes one durable event, in order.
func (s *sinks) event(e store.Event) {
	s.events++
	s.progress.event(e)
	if s.timeline == nil || s.err != nil {
		return
	}
	b, err := json.Marshal(e)
	if err == nil {
		_, err = s.timeline.Write(append(b, '\n'))
	}
	s.err = err
}

// finish completes the files of a run.
func (s *sinks) finish(ctx context.Context, h *host.Host, r *run.Result) error {
	s.progress.close()
	err := s.err
	if s.timeline != nil {
		err = errors.Join(err, s.timeline.Close())
	}
	if s.export != nil {
		err = errors.Join(err, s.export.run(ctx, h.Store, r))
	}
	if err != nil {
		return fmt.Errorf("write output of run %s: %w", r.RunID, err)
	}
	return nil
}
