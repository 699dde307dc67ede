package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// changes are what a run did to the stored streams of its connection.
type changes map[store.Stream]streamChange

// A streamChange is what a run did to one stored stream.
type streamChange struct {
	before   uint64 // last version before the run
	versions uint64 // records that got a new version: new, changed or deleted
	live     uint64 // records there are now
}

// connectionOf returns the connection that a request is about.
func connectionOf(q app.RunRequest) store.ConnectionID {
	if q.Connection != "" {
		return q.Connection
	}
	if q.Replay != nil {
		return q.Replay.Connection()
	}
	return store.ConnectionID(q.Connector.Manifest.Name())
}

// streamStats reads the counters of a connection. One that is new, or that a
// conformance connector has for a single run, has none.
func streamStats(ctx context.Context, src *client.Client,
	id store.ConnectionID) (map[store.Stream]store.StreamStats, error) {
	list, err := src.Streams(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("read counters of %s: %w", id, err)
	}
	out := map[store.Stream]store.StreamStats{}
	for _, s := range list {
		out[s.Stream] = s
	}
	return out, nil
}

// compare subtracts counters. Only one run of a connection is active, so the
// difference is that run's.
func compare(before, after map[store.Stream]store.StreamStats) changes {
	out := changes{}
	for name, a := range after {
		b := before[name]
		out[name] = streamChange{before: b.LastVersion, versions: a.LastVersion - b.LastVersion, live: a.Live}
	}
	return out
}

// since selects the records that the run stored.
func (c changes) since(r *run.Result, m *abi.Manifest) export.Selection {
	s := export.Selection{Connection: r.ConnectionID, Deleted: true, Manifest: m}
	for _, spec := range m.Streams {
		if ch := c[store.Stream(spec.Name)]; ch.versions > 0 {
			s.Streams = append(s.Streams, export.From{Stream: store.Stream(spec.Name), After: ch.before})
		}
	}
	return s
}
