package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// A source is what read commands look at and tidy up: the store itself (stored),
// or the host that has it open (served). Both give the same.
type source interface {
	Connectors(context.Context) ([]store.Connector, error)
	Connections(context.Context) ([]store.Connection, error)
	// Connection is store.ErrNotFound when there is none.
	Connection(context.Context, store.ConnectionID) (store.Connection, error)
	Streams(context.Context, store.ConnectionID) ([]store.StreamStats, error)
	// Run is store.ErrNotFound when there is none.
	Run(context.Context, store.RunID) (store.Run, error)
	// Records pages in version order.
	Records(context.Context, store.RecordQuery) (store.RecordPage, error)
	States(context.Context, store.ConnectionID, store.GrantID) ([]store.State, error)
	ResetState(context.Context, store.ConnectionID, store.GrantID, store.Stream) error

	// eachRun lists runs, newest first, until do returns false. Of the result they
	// have what a list shows.
	eachRun(ctx context.Context, of store.ConnectionID, do func(store.Run) (more bool, err error)) error
	// exporting reads records for a file: who gets them is written down.
	exporting() exporter
	// exported writes down that records were written to a file (A168).
	exported(f *recordFile, id store.ConnectionID, only string) error
	eachEvent(ctx context.Context, run store.RunID, from uint64, do func(timeline.Doc) error) error
	// artifacts are the files that a run left and that are kept; artifact writes the
	// content of one, to be thrown away after an error.
	artifacts(ctx context.Context, run store.RunID) ([]timeline.Artifact, error)
	artifact(ctx context.Context, a timeline.Artifact, to io.Writer) error
	requests(ctx context.Context, run store.RunID) (iter.Seq2[audit.Request, error], error)

	uninstall(ctx context.Context, name string) error
	revoke(context.Context, store.ConnectionID) (store.Connection, error)
	narrow(ctx context.Context, id store.ConnectionID, hosts, mounts, plain []string, browser bool) (store.Connection, error)
}

// reading gives a command what is stored: through the host that has it open, or
// from the store, without a sandbox. It makes no data directory.
func (c *command) reading(ctx context.Context, do func(source) error) error {
	k, err := c.running(ctx)
	if err != nil {
		return err
	}
	if k != nil {
		defer k.Close()
		return do(served{k})
	}
	return c.storedHere(ctx, func(h *app.Host) error { return do(stored{h.Store, h}) })
}

// lasting is the data directory; a store in memory has none.
func (c *command) lasting() (string, error) {
	dir, err := app.DataDir(c.store)
	if err == nil && dir == "" {
		err = usagef("a memory: store keeps nothing between commands; name another with --store badger:DIR")
	}
	return dir, err
}

// storedHere is reading for what the store alone has.
func (c *command) storedHere(ctx context.Context, do func(*app.Host) error) error {
	dir, err := c.lasting()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "db")); errors.Is(err, os.ErrNotExist) {
		return usagef("nothing is stored in %s yet; sluice run CONNECTOR stores something there, --store names another place", dir)
	}
	return c.with(ctx, app.Options{NoSandbox: true}, do)
}

// stored is a source over an open store.
type stored struct {
	store.Store
	host *app.Host
}

var _ source = stored{}

// Connections leaves out those that live no longer than their run (A242).
func (s stored) Connections(ctx context.Context) ([]store.Connection, error) {
	all, err := s.Store.Connections(ctx)
	if err != nil {
		return nil, fmt.Errorf("list connections: %w", err)
	}
	return slices.DeleteFunc(all, func(c store.Connection) bool { return c.Temporary }), nil
}

func (s stored) eachRun(ctx context.Context, of store.ConnectionID, do func(store.Run) (bool, error)) error {
	for before := store.RunID(""); ; {
		runs, err := s.Runs(ctx, of, before, page)
		if err != nil {
			return fmt.Errorf("list runs: %w", err)
		}
		for _, r := range runs {
			if more, err := do(r); err != nil || !more {
				return err
			}
		}
		if len(runs) < page {
			return nil
		}
		before = runs[len(runs)-1].ID
	}
}

// An exporter is the Source of one export.
type exporter interface {
	export.Source
	stop()
}

func (s stored) exporting() exporter { return s }

func (stored) stop() {}

func (s stored) exported(f *recordFile, id store.ConnectionID, only string) error {
	return f.audit(s.host, id, only)
}

func (s stored) eachEvent(ctx context.Context, run store.RunID, from uint64, do func(timeline.Doc) error) error {
	for {
		events, err := s.Events(ctx, run, from, page)
		if err != nil {
			return fmt.Errorf("read events of %s: %w", run, err)
		}
		for _, e := range events {
			if err := do(timeline.Document(e)); err != nil {
				return err
			}
			from = e.Sequence + 1
		}
		if len(events) < page {
			return nil
		}
	}
}

func (s stored) requests(ctx context.Context, run store.RunID) (iter.Seq2[audit.Request, error], error) {
	return s.host.Requests().All(ctx, string(run)), nil
}

func (s stored) uninstall(ctx context.Context, name string) error { return s.host.Uninstall(ctx, name) }

func (s stored) revoke(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	return s.host.Revoke(ctx, id)
}

func (s stored) narrow(ctx context.Context, id store.ConnectionID, hosts, mounts, plain []string, browser bool) (store.Connection, error) {
	return s.host.Narrow(ctx, id, hosts, mounts, plain, browser)
}
