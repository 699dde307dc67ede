package store

import (
	"context"
	"time"
)

// A Store keeps what lasts. All methods may be called concurrently. Reads see
// a commit entirely or not at all (A90). Returned slices and raw messages
// belong to the caller.
type Store interface {
	// PutConnector inserts or replaces by (ID, Bundled).
	PutConnector(ctx context.Context, c Connector) error
	// Connectors lists all, ordered by id, installed before bundled.
	Connectors(ctx context.Context) ([]Connector, error)
	// DeleteConnector removes one; ErrNotFound.
	DeleteConnector(ctx context.Context, id ConnectorID, bundled bool) error
	// PutPin inserts or replaces by ConnectorID.
	PutPin(ctx context.Context, p Pin) error
	// Pins lists all, ordered by connector id. Nothing deletes one.
	Pins(ctx context.Context) ([]Pin, error)

	PutConnection(ctx context.Context, c Connection) error
	// ChangeConnection replaces what is stored by what change makes of it, and
	// returns that; nothing comes between. change may be called more than once, and
	// neither blocks nor uses the store; its error is returned, and nothing changes.
	// ErrNotFound.
	ChangeConnection(ctx context.Context, id ConnectionID, change func(*Connection) error) (Connection, error)
	// Connection returns one; ErrNotFound.
	Connection(ctx context.Context, id ConnectionID) (Connection, error)
	Connections(ctx context.Context) ([]Connection, error)

	// Acquire inserts the run record and the connection's active-run record in one
	// step and returns the lease with the next fence (R183). *ActiveError when the
	// connection has an active run (R4).
	Acquire(ctx context.Context, r Run, hostID, bootEpoch string, ttl time.Duration) (Lease, error)
	// Renew moves the expiry of a lease to now + ttl; ErrFenced.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Leases lists the active-run records (R188).
	Leases(ctx context.Context) ([]Lease, error)

	// Submit queues c and returns at once unless more than a bounded amount is
	// queued, in which case it waits or ends with ctx's error. The receipt is
	// settled when the commit is durable.
	Submit(ctx context.Context, c *Commit) (*Receipt, error)

	Run(ctx context.Context, id RunID) (Run, error)
	// Runs lists newest first. connection "" means all; before "" starts at the
	// newest, else only runs with a smaller id are listed.
	Runs(ctx context.Context, connection ConnectionID, before RunID, limit int) ([]Run, error)
	// Events lists a run's events with Sequence >= from, in order.
	Events(ctx context.Context, id RunID, from uint64, limit int) ([]Event, error)
	// Pending lists the open questions of a run, or of all runs when id is "".
	Pending(ctx context.Context, id RunID) ([]Interaction, error)

	// States returns the committed cursors of one namespace (R11).
	States(ctx context.Context, connection ConnectionID, grant GrantID) ([]State, error)
	// Staged returns the staged cursors of a run that is not over.
	Staged(ctx context.Context, id RunID) ([]State, error)
	// ResetState deletes the cursor of one stream, or of all when stream is "".
	// *ActiveError while a run is active.
	ResetState(ctx context.Context, connection ConnectionID, grant GrantID, stream Stream) error
	// Gaps lists detail gaps of a namespace, oldest first. status "" means all.
	Gaps(ctx context.Context, connection ConnectionID, grant GrantID, status string) ([]DetailGap, error)

	// Streams returns the counters of a connection's streams, by name.
	Streams(ctx context.Context, connection ConnectionID) ([]StreamStats, error)
	// Records lists one stream in version order (RecordQuery, RecordPage).
	Records(ctx context.Context, q RecordQuery) (RecordPage, error)
	// Record returns the current record or tombstone of a key; ErrNotFound.
	Record(ctx context.Context, connection ConnectionID, stream Stream, key string) (Record, error)

	// Watch returns a channel of capacity 1 that gets a wake-up after a commit that
	// appended to the run's timeline, coalesced; "" watches all runs (invariant 7).
	// stop releases it.
	Watch(id RunID) (wake <-chan struct{}, stop func())

	// Verify recounts everything and compares it with the counters and chains
	// (S124); *DamageError names the first difference.
	Verify(ctx context.Context) error

	Close() error
}
