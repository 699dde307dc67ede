package app

import (
	"context"
	"path/filepath"

	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/files"
	"github.com/sluicehost/sluice/host/destination/parquet"
	"github.com/sluicehost/sluice/host/destination/postgres"
	"github.com/sluicehost/sluice/host/destination/sqlite"
	"github.com/sluicehost/sluice/host/query"
	"github.com/sluicehost/sluice/host/search"
)

// DestinationKinds are the destinations of this build, one line each.
var DestinationKinds = destination.Kinds{
	sqlite.Kind{},
	files.JSONL,
	files.CSV,
	parquet.Kind,
	postgres.Kind{},
}

// newMirror prepares queries over what a host collected.
func newMirror(d *directory) *query.Mirror {
	dir := ""
	if d.DataDir != "" {
		dir = filepath.Join(d.DataDir, "mirror")
	}
	return query.New(query.Options{Store: d.Store, Dir: dir, Room: d.checkSpace})
}

// newIndexes prepares the search over what a host collected.
func newIndexes(d *directory) *search.Indexes {
	dir := ""
	if d.DataDir != "" {
		dir = filepath.Join(d.DataDir, "search")
	}
	return search.New(search.Options{Store: d.Store, Dir: dir, Room: d.checkSpace})
}

// openDestinations feeds the destinations of a host.
func openDestinations(ctx context.Context, d *directory, secrets *SigningSecrets, idle bool) (*destination.Feeds, error) {
	return destination.Open(ctx, destination.Options{
		Store: d.Store, Secrets: secrets, Kinds: DestinationKinds, Host: d.ID, DataDir: d.DataDir, Idle: idle, Log: d.Options.Log,
		Audited: func(ctx context.Context, action, name string, do func() error) error {
			return asRefusal(d.audited(by(ctx, audit.Event{Action: audit.Action(action), Target: name, Outcome: audit.Done}), do))
		},
	})
}
