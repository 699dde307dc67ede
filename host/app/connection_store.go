package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// connectionStore finds, makes and changes connections.
type connectionStore struct {
	*directory
	creating sync.Mutex // held while a connection is made, so that ids are unique
}

// findOrMake returns the connection of a request, and stores it if it is new.
func (cs *connectionStore) findOrMake(ctx context.Context, q RunRequest) (store.Connection, error) {
	cs.creating.Lock()
	defer cs.creating.Unlock()
	c, err := cs.find(ctx, q)
	if err != nil || !isNew(c) {
		return c, err
	}
	c.Revision = 1
	return c, cs.put(ctx, c)
}

// isNew reports whether a connection is not stored yet.
func isNew(c store.Connection) bool { return c.Revision == 0 }

// find returns the connection of a request, or describes the one that it would get if none exists. A connection
// belongs to one connector.
func (cs *connectionStore) find(ctx context.Context, q RunRequest) (store.Connection, error) {
	l, id := q.Connector, q.connectionID()
	if !abi.IsSlug(string(id)) {
		return store.Connection{},
			refusal("connection_not_found",
				fmt.Errorf("connection id %q: want ^[a-z0-9][a-z0-9_-]{0,63}$", abi.Cut(abi.Clean(string(id)), 80)))
	}
	c, err := cs.Store.Connection(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound) && q.Existing:
		return c, refusal("connection_not_found", fmt.Errorf("there is no connection %s", id))
	case errors.Is(err, store.ErrNotFound):
		if other, err := cs.dataOwner(ctx, id); err != nil || other != "" && other != l.Connector.ID {
			return c, cmp.Or(err, error(refusal("connection_not_found",
				fmt.Errorf("what connector %s collected is kept as %s; name another with --connection", other, id))))
		}
		now := time.Now()
		settings := q.Config
		if q.Replay != nil { // the recording has them
			settings = nil
		}
		return store.Connection{ID: id, ConnectorID: l.Connector.ID, Enabled: true, Settings: settings,
			Manifest: l.Manifest.Raw,
			Digest:   l.Connector.Digest, CreatedAt: now, UpdatedAt: now}, nil
	case err != nil:
		return c, fmt.Errorf("load connection %s: %w", id, err)
	case c.ConnectorID != l.Connector.ID:
		return c, refusal("connection_not_found",
			fmt.Errorf("connection %s belongs to connector %s; name another with --connection", id, c.ConnectorID))
	case !c.Enabled:
		return c, refusal("connection_disabled", fmt.Errorf("connection %s is disabled", id))
	}
	c.Revision = max(c.Revision, 1)
	return c, nil
}

// dataOwner returns the connector whose data a deleted connection left under an id, "" if there is none.
func (cs *connectionStore) dataOwner(ctx context.Context, id store.ConnectionID) (store.ConnectorID, error) {
	runs, err := cs.Store.Runs(ctx, id, "", 1)
	if err != nil || len(runs) == 0 {
		return "", err
	}
	return runs[0].ConnectorID, nil
}

// idle refuses a connection that has a run. The check is for a clear answer before any work is done; the lease
// decides races.
func (cs *connectionStore) idle(ctx context.Context, id store.ConnectionID) error {
	leases, err := cs.Store.Leases(ctx)
	if err != nil {
		return fmt.Errorf("list active runs: %w", err)
	}
	for _, l := range leases {
		if l.ConnectionID == id {
			return &run.Refusal{Code: "run_already_active",
				Message: fmt.Sprintf("connection %s is being collected by run %s", id, l.RunID),
				Details: map[string]any{"activeRunId": l.RunID}}
		}
	}
	return nil
}

// connectionID returns the connection that a request names, by default the connector's name.
func (q RunRequest) connectionID() store.ConnectionID {
	if q.Connection == "" {
		return store.ConnectionID(q.Connector.Manifest.Name())
	}
	return q.Connection
}

// create stores a connection. It refuses an id that is in use or has data of another connector.
func (cs *connectionStore) create(ctx context.Context, c store.Connection) error {
	cs.creating.Lock()
	defer cs.creating.Unlock()
	_, err := cs.Store.Connection(ctx, c.ID)
	if err == nil {
		return host.Refuse("conflict", "there is a connection %s; give the new one another id", c.ID)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	kept, err := cs.dataOwner(ctx, c.ID)
	if err != nil {
		return err
	}
	if kept != "" && kept != c.ConnectorID {
		return host.Refuse("conflict", "what another connector collected is kept under this id; choose another id")
	}
	return cs.put(ctx, c)
}

// put stores a new connection and records that in the audit log.
func (cs *connectionStore) put(ctx context.Context, c store.Connection) error {
	return cs.audited(by(ctx, audit.Event{Action: audit.ConnectionCreated, Target: string(c.ID), Outcome: audit.Done}),
		func() error { return cs.Store.PutConnection(ctx, c) })
}

// permanent returns a connection that is not temporary. A temporary one is store.ErrNotFound.
func (cs *connectionStore) permanent(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	if !abi.IsSlug(string(id)) {
		return store.Connection{}, notFound("connection")
	}
	c, err := cs.Store.Connection(ctx, id)
	if err == nil && c.Temporary {
		err = notFound("connection")
	}
	return c, err
}

// change updates a connection atomically and increments its revision. The change sees the latest state, so a
// concurrent revocation is not undone.
func (cs *connectionStore) change(ctx context.Context, id store.ConnectionID,
	change func(*store.Connection) error) (store.Connection, error) {
	return cs.Store.ChangeConnection(ctx, id, func(c *store.Connection) error {
		c.UpdatedAt = time.Now()
		c.Revision++
		return change(c)
	})
}
