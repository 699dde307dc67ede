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
	sender "github.com/sluicehost/sluice/host/destination/webhook"
	"github.com/sluicehost/sluice/host/query"
	"github.com/sluicehost/sluice/host/search"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// destinationKinds are the destinations of this build, one line each.
func destinationKinds(c *webhook.Courier) destination.Kinds {
	return destination.Kinds{
		sqlite.Kind{},
		files.JSONL,
		files.CSV,
		parquet.Kind,
		postgres.Kind{},
		sender.Kind{Courier: c},
	}
}

// newMirror prepares queries over what a host collected.
func newMirror(d *directory) *query.Mirror {
	dir := ""
	if d.DataDir != "" {
		dir = filepath.Join(d.DataDir, "mirror")
	}
	return query.New(query.Options{Store: d.Store, Dir: dir, Most: d.Options.Copies.Query, Setting: "copies.query_bytes", Room: d.checkSpace})
}

// newIndexes prepares the search over what a host collected.
func newIndexes(d *directory) *search.Indexes {
	dir := ""
	if d.DataDir != "" {
		dir = filepath.Join(d.DataDir, "search")
	}
	return search.New(search.Options{Store: d.Store, Dir: dir, Most: d.Options.Copies.Search, Setting: "copies.search_bytes", Room: d.checkSpace})
}

// openDestinations feeds the destinations of a host.
func openDestinations(ctx context.Context, d *directory, secrets *SigningSecrets, o ServiceOptions) (*destination.Feeds, error) {
	return destination.Open(ctx, destination.Options{
		Store: d.Store, Secrets: secrets, Kinds: destinationKinds(webhook.NewCourier(o.Webhooks)), Host: d.ID, DataDir: d.DataDir, Idle: o.Idle, Members: store.MembersOf(d.Store), Log: d.Options.Log,
		Audited: func(ctx context.Context, action, name string, do func() error) error {
			return asRefusal(d.audited(by(ctx, audit.Event{Action: audit.Action(action), Target: name, Outcome: audit.Done}), do))
		},
	})
}
