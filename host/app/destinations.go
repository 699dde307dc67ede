package app

import (
	"context"
	"path/filepath"

	"github.com/sluicehost/sluice/host"
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

// destinations are those of all hosts that share a store: what is asked of one, the host does that feeds it.
type destinations struct {
	*destination.Feeds
	hosts *hosts
}

// A feedRequest is what is asked of the feeder of a destination.
type feedRequest struct {
	Name       string             `json:"name"`
	Paused     bool               `json:"paused,omitempty"`
	Secret     string             `json:"secret,omitempty"`
	Connection store.ConnectionID `json:"connection,omitempty"`
	Stream     store.Stream       `json:"stream,omitempty"`
}

// serve adds what other hosts ask.
func (ds *destinations) serve(p *peers) {
	serve(p, "destination.sync", ds.sync)
	serve(p, "destination.pause", ds.pause)
	serve(p, "destination.rotate", ds.rotate)
	serve(p, "destination.rebuild", ds.rebuild)
	serve(p, "destination.remove", ds.remove)
}

// SyncDestination implements host.Destinations.
func (ds *destinations) SyncDestination(ctx context.Context, name string) (host.Destination, error) {
	return atFeeder(ctx, ds, "destination.sync", feedRequest{Name: name}, ds.sync)
}

func (ds *destinations) sync(ctx context.Context, q feedRequest) (host.Destination, error) {
	return ds.Feeds.SyncDestination(ctx, q.Name)
}

// PauseDestination implements host.Destinations.
func (ds *destinations) PauseDestination(ctx context.Context, name string, paused bool) (host.Destination, error) {
	return atFeeder(ctx, ds, "destination.pause", feedRequest{Name: name, Paused: paused}, ds.pause)
}

func (ds *destinations) pause(ctx context.Context, q feedRequest) (host.Destination, error) {
	return ds.Feeds.PauseDestination(ctx, q.Name, q.Paused)
}

// RotateDestination implements host.Destinations.
func (ds *destinations) RotateDestination(ctx context.Context, name, secret string) (host.Destination, error) {
	return atFeeder(ctx, ds, "destination.rotate", feedRequest{Name: name, Secret: secret}, ds.rotate)
}

func (ds *destinations) rotate(ctx context.Context, q feedRequest) (host.Destination, error) {
	return ds.Feeds.RotateDestination(ctx, q.Name, q.Secret)
}

// RebuildDestination implements host.Destinations.
func (ds *destinations) RebuildDestination(ctx context.Context, name string, connection store.ConnectionID, stream store.Stream) (host.Destination, error) {
	return atFeeder(ctx, ds, "destination.rebuild", feedRequest{Name: name, Connection: connection, Stream: stream}, ds.rebuild)
}

func (ds *destinations) rebuild(ctx context.Context, q feedRequest) (host.Destination, error) {
	return ds.Feeds.RebuildDestination(ctx, q.Name, q.Connection, q.Stream)
}

// RemoveDestination implements host.Destinations.
func (ds *destinations) RemoveDestination(ctx context.Context, name string) error {
	_, err := atFeeder(ctx, ds, "destination.remove", feedRequest{Name: name}, ds.remove)
	return err
}

func (ds *destinations) remove(ctx context.Context, q feedRequest) (struct{}, error) {
	return struct{}{}, ds.Feeds.RemoveDestination(ctx, q.Name)
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
