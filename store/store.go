package store

import (
	"context"
	"time"
)

// A Store keeps what lasts. It is the sum of the views below; whoever needs one
// of them holds that one. All methods may be called concurrently. Reads see a
// commit entirely or not at all. Returned slices and raw messages belong to the
// caller.
type Store interface {
	Connectors
	Connections
	Documents
	Leases
	Runs
	Timelines
	States
	Records

	// Verify recounts everything and compares it with the counters and chains;
	// *DamageError names the first difference.
	Verify(ctx context.Context) error
	Close() error
}

// Connectors are the installed modules, and the keys their publishers are held to.
type Connectors interface {
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
}

// Connections are the named instances of connectors.
type Connections interface {
	PutConnection(ctx context.Context, c Connection) error
	// ChangeConnection replaces what is stored by what change makes of it, and
	// returns that; nothing comes between. change may be called more than once, and
	// neither blocks nor uses the store; its error is returned, and nothing changes.
	// ErrNotFound.
	ChangeConnection(ctx context.Context, id ConnectionID, change func(*Connection) error) (Connection, error)
	// Connection returns one; ErrNotFound.
	Connection(ctx context.Context, id ConnectionID) (Connection, error)
	Connections(ctx context.Context) ([]Connection, error)
	// DeleteConnection removes one; ErrNotFound, *ActiveError while a run is
	// active. With erase its records, cursors and gaps go as well, also when only
	// they are left of it. The first commit decides: from then on nothing of them
	// is shown, and a store that is opened again finishes what was begun. Run
	// records and timelines stay.
	DeleteConnection(ctx context.Context, id ConnectionID, erase bool) error
}

// Documents are the small JSON values that belong to no run.
type Documents interface {
	// Write changes documents, all or none. *ConflictError when one is not as
	// expected.
	Write(ctx context.Context, writes ...Write) error
	// Document returns one; ErrNotFound.
	Document(ctx context.Context, kind Kind, id string) (Document, error)
	Documents(ctx context.Context, q DocumentQuery) ([]Document, error)
	// Sweep deletes documents that have expired. It costs what it deletes, so it
	// may be called often.
	Sweep(ctx context.Context) error
}

// Leases are how a run gets its connection and writes under it.
type Leases interface {
	// Acquire inserts the run record and the connection's lease in one step and
	// returns the lease with the next fence. *ActiveError when the connection has
	// an active run. with are written in the same step: the schedule whose tick it
	// is, the answer to an idempotent request.
	Acquire(ctx context.Context, r Run, hostID, bootEpoch string, ttl time.Duration, with ...Write) (Lease, error)
	// Renew moves the expiry of a lease to now + ttl; ErrFenced.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// TakeOver gives the lease of a run that is active to another holder, with the next
	// fence: the one before commits and renews nothing any more. ErrFenced when l is not
	// current.
	TakeOver(ctx context.Context, l Lease, hostID, bootEpoch string, ttl time.Duration) (Lease, error)
	// Journal returns a piece of an active run's journal; ErrNotFound. Backups have none.
	Journal(ctx context.Context, id RunID, n uint64) ([]byte, error)
	// Leases lists those of all active runs.
	Leases(ctx context.Context) ([]Lease, error)
	// Submit queues c and returns at once unless more than a bounded amount is
	// queued, in which case it waits or ends with ctx's error. The receipt is
	// settled when the commit is durable.
	Submit(ctx context.Context, c *Commit) (*Receipt, error)
}

// Runs are the run records, which outlive their timelines.
type Runs interface {
	Run(ctx context.Context, id RunID) (Run, error)
	// Runs lists newest first. connection "" means all; before "" starts at the
	// newest, else only runs with a smaller id are listed.
	Runs(ctx context.Context, connection ConnectionID, before RunID, limit int) ([]Run, error)
	// Pending lists the open questions of a run, or of all runs when id is "".
	Pending(ctx context.Context, id RunID) ([]Interaction, error)
}

// Timelines are the events of runs.
type Timelines interface {
	// Events lists a run's events with Sequence >= from, in order.
	Events(ctx context.Context, id RunID, from uint64, limit int) ([]Event, error)
	// EventsBefore lists the newest limit events with Sequence < before, in order;
	// before 0 is the end.
	EventsBefore(ctx context.Context, id RunID, before uint64, limit int) ([]Event, error)
	// RunHead says where a run's timeline stands without reading it; ErrNotFound.
	RunHead(ctx context.Context, id RunID) (RunHead, error)
	// Watch returns a channel of capacity 1 that gets a wake-up after a commit that
	// appended to the run's timeline, coalesced; "" watches all runs. stop releases
	// it.
	Watch(id RunID) (wake <-chan struct{}, stop func())
	// Prune deletes the timeline of a run that is over and marks the run Pruned.
	// ErrNotFound, *ActiveError. Doing it again is no error. The first commit
	// decides, as with DeleteConnection.
	Prune(ctx context.Context, id RunID) error
}

// States are where the next run of a connection goes on.
type States interface {
	// States returns the committed cursors of one namespace.
	States(ctx context.Context, connection ConnectionID, grant GrantID) ([]State, error)
	// Staged returns the staged cursors of a run that is not over.
	Staged(ctx context.Context, id RunID) ([]State, error)
	// ResetState deletes the cursor of one stream, or of all when stream is "".
	// *ActiveError while a run is active.
	ResetState(ctx context.Context, connection ConnectionID, grant GrantID, stream Stream) error
	// Gaps lists detail gaps of a namespace, oldest first. status "" means all.
	Gaps(ctx context.Context, connection ConnectionID, grant GrantID, status string) ([]DetailGap, error)
}

// Records are what runs collected, by connection and stream.
type Records interface {
	// Streams returns the counters of a connection's streams, by name.
	Streams(ctx context.Context, connection ConnectionID) ([]StreamStats, error)
	// Records lists one stream (RecordQuery, RecordPage). Versions that a key had
	// before its current one are not kept.
	Records(ctx context.Context, q RecordQuery) (RecordPage, error)
	// Record returns the current record or tombstone of a key; ErrNotFound.
	Record(ctx context.Context, connection ConnectionID, stream Stream, key string) (Record, error)
	// View opens the records as of the newest commit, for an export.
	View(ctx context.Context) (View, error)
}
