package app

import (
	"context"
	"errors"
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

// destinationKinds returns the kinds of destinations of this build.
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

// newMirror prepares queries of collected data.
func newMirror(d *directory) *query.Mirror {
	dir := ""
	if d.DataDir != "" {
		dir = filepath.Join(d.DataDir, "mirror")
	}
	return query.New(query.Options{Store: d.Store, Dir: dir, Most: d.Options.Copies.Query, Setting: "copies.query_bytes",
		Room: d.checkSpace})
}

// newIndexes prepares the search in collected data.
func newIndexes(d *directory) *search.Indexes {
	dir := ""
	if d.DataDir != "" {
		dir = filepath.Join(d.DataDir, "search")
	}
	return search.New(search.Options{Store: d.Store, Dir: dir, Most: d.Options.Copies.Search,
		Setting: "copies.search_bytes", Room: d.checkSpace})
}

// destinations serves the destinations of all hosts that share a store. Requests go to the host that feeds the
// destination.
type destinations struct {
	*destination.Feeds
	hosts *hosts
}

// A feedRequest is a request to the host that feeds a destination.
type feedRequest struct {
	Do         string             `json:"do"` // sync, pause, resume, rotate, rebuild, remove
	Name       string             `json:"name"`
	Secret     string             `json:"secret,omitempty"`
	Connection store.ConnectionID `json:"connection,omitempty"`
	Stream     store.Stream       `json:"stream,omitempty"`
}

// here performs a request on this host.
func (ds *destinations) here(ctx context.Context, q feedRequest) (host.Destination, error) {
	switch q.Do {
	case "sync":
		return ds.Feeds.SyncDestination(ctx, q.Name)
	case "pause", "resume":
		return ds.Feeds.PauseDestination(ctx, q.Name, q.Do == "pause")
	case "rotate":
		return ds.Feeds.RotateDestination(ctx, q.Name, q.Secret)
	case "rebuild":
		return ds.Feeds.RebuildDestination(ctx, q.Name, q.Connection, q.Stream)
	case "remove":
		return host.Destination{}, ds.Feeds.RemoveDestination(ctx, q.Name)
	}
	return host.Destination{}, ds.hosts.peers.unable()
}

// ask has the host that feeds the destination perform a request. That is this host if no other feeds it.
func (ds *destinations) ask(ctx context.Context, q feedRequest) (d host.Destination, err error) {
	p := ds.hosts.peers
	if p == nil {
		return ds.here(ctx, q)
	}
	m, err := ds.Feeder(ctx, q.Name)
	if err != nil || m == nil {
		return ds.here(ctx, q) // which reports the error
	}
	d, err = atMember[feedRequest, host.Destination](ctx, p, m, feedVerb, q)
	if errors.Is(err, errOrphan) {
		err = host.Refuse("unavailable",
			"host %s, which fed destination %s, is gone, and no other one feeds it yet; ask again in a moment", m.ID, q.Name)
	}
	return d, err
}

const feedVerb = "destination" // the verb of such commands

// SyncDestination implements host.Destinations.
func (ds *destinations) SyncDestination(ctx context.Context, name string) (host.Destination, error) {
	return ds.ask(ctx, feedRequest{Do: "sync", Name: name})
}

// PauseDestination implements host.Destinations.
func (ds *destinations) PauseDestination(ctx context.Context, name string, paused bool) (host.Destination, error) {
	if paused {
		return ds.ask(ctx, feedRequest{Do: "pause", Name: name})
	}
	return ds.ask(ctx, feedRequest{Do: "resume", Name: name})
}

// RotateDestination implements host.Destinations.
func (ds *destinations) RotateDestination(ctx context.Context, name, secret string) (host.Destination, error) {
	return ds.ask(ctx, feedRequest{Do: "rotate", Name: name, Secret: secret})
}

// RebuildDestination implements host.Destinations.
func (ds *destinations) RebuildDestination(ctx context.Context, name string, connection store.ConnectionID,
	stream store.Stream) (host.Destination, error) {
	return ds.ask(ctx, feedRequest{Do: "rebuild", Name: name, Connection: connection, Stream: stream})
}

// RemoveDestination implements host.Destinations.
func (ds *destinations) RemoveDestination(ctx context.Context, name string) error {
	_, err := ds.ask(ctx, feedRequest{Do: "remove", Name: name})
	return err
}

// openDestinations starts feeding destinations.
func openDestinations(ctx context.Context, d *directory, secrets *SigningSecrets,
	o ServiceOptions) (*destination.Feeds, error) {
	return destination.Open(ctx, destination.Options{
		Store: d.Store, Secrets: secrets, Kinds: destinationKinds(webhook.NewCourier(o.Webhooks)), Host: d.ID,
		DataDir: d.DataDir, Idle: o.Idle, Members: store.MembersOf(d.Store), Log: d.Options.Log,
		Audited: func(ctx context.Context, action, name string, do func() error) error {
			return asRefusal(d.audited(by(ctx, audit.Event{Action: audit.Action(action), Target: name, Outcome: audit.Done}),
				do))
		},
	})
}
