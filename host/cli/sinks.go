package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// sinks are the files to which a run's events and records are also written.
type sinks struct {
	timeline *os.File
	records  *recordFile
	err      error // the first of writing the timeline
	finished bool
}

// openSinks opens the files; finish or abandon closes them.
func openSinks(f *runFlags) (*sinks, error) {
	s := &sinks{}
	var err error
	if f.out != "" {
		if s.records, err = createRecords("--out", f.out); err != nil {
			return nil, err
		}
	}
	if f.timeline != "" {
		if s.timeline, err = os.Create(app.Home(f.timeline)); err != nil {
			s.abandon()
			return nil, usagef("--timeline: %w", err)
		}
	}
	return s, nil
}

// event takes one durable event, in order: the envelope as stored.
func (s *sinks) event(e store.Event) error {
	b, err := json.Marshal(e)
	if err == nil {
		_, err = s.timeline.Write(append(b, '\n'))
	}
	s.err = err
	return err
}

// wantsEvents reports whether events are written to a file, and none failed.
func (s *sinks) wantsEvents() bool { return s != nil && s.timeline != nil && s.err == nil }

// finish completes the files of a run.
func (s *sinks) finish(ctx context.Context, src *client.Client, r *run.Result, stored export.Selection) error {
	s.finished = true
	err := s.err
	if s.timeline != nil {
		err = errors.Join(err, s.timeline.Close())
	}
	if s.records != nil {
		err = errors.Join(err, s.export(ctx, src, stored))
	}
	if err != nil {
		return fmt.Errorf("run %s is stored, its files are not complete: %w", r.RunID, err)
	}
	return nil
}

func (s *sinks) export(ctx context.Context, src *client.Client, stored export.Selection) error {
	s.records.exporter = func() *client.Exporter { return src.Exporter("", nil) }
	if err := s.records.write(ctx, stored); err != nil {
		s.records.abandon()
		return fmt.Errorf("write %s: %w", s.records.path, err)
	}
	return s.records.commit()
}

// abandon removes the files of a run that was not started.
func (s *sinks) abandon() {
	if s.finished {
		return
	}
	if s.records != nil {
		s.records.abandon()
	}
	if s.timeline != nil {
		s.timeline.Close()
		os.Remove(s.timeline.Name())
	}
}
