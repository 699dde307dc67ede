package store

import (
	"context"
	"time"
)

// A Store is the durable storage of a host. It is the sum of the views below; code that
// needs one takes that view. All methods are safe for concurrent use. Reads see a commit
// entirely or not at all. Returned slices and raw messages belong to the caller.
type Store interface {
	Connectors
	Connections
	Documents
	Leases
	Runs
	Timelines
	States
	Records

	// Verify recomputes all counters and chains and compares them; a *DamageError names the
	// first difference.
	Verify(ctx context.Context) error
	Close() error
}

// Connectors are the installed modules, and the pinned keys of their publishers.
type Connectors interface {
	// PutConnector inserts or replaces by (ID, Bundled).
	PutConnector(ctx context.Context, c Connector) error
	// Connectors lists all, ordered by id, installed before bundled.
	Connectors(ctx context.Context) ([]Connector, error)
	// DeleteConnector removes one; ErrNotFound.
	DeleteConnector(ctx context.Context, id ConnectorID, bundled bool) error
	// PutPin inserts or replaces by ConnectorID.
	PutPin(ctx context.Context, p Pin) error
	// Pins lists all, ordered by connector id. Pins are never deleted.
	Pins(ctx context.Context) ([]Pin, error)
}

// Connections are the configured instances of connectors.
type Connections interface {
	PutConnection(ctx context.Context, c Connection) error
	// ChangeConnection atomically replaces a connection by the result of change, and
	// returns that, or ErrNotFound. change may be called more than once, and must neither
	// block nor use the store; its error is returned, and then nothing changes.
	ChangeConnection(ctx context.Context, id ConnectionID, change func(*Connection) error) (Connection, error)
	// Connection returns one; ErrNotFound.
	Connection(ctx context.Context, id ConnectionID) (Connection, error)
	Connections(ctx context.Context) ([]Connection, error)
	// DeleteConnection deletes a connection; ErrNotFound, or *ActiveError while a run is
	// active. erase also deletes its records, cursors and gaps, even if only these are
	// left. The first commit hides them; an interrupted deletion is completed when the
	// store is next opened. Run records and timelines stay.
	DeleteConnection(ctx context.Context, id ConnectionID, erase bool) error
}

// Documents are the small JSON values that belong to no run.
type Documents interface {
	// Write changes documents, all or none. *ConflictError if one does not have the
	// required revision.
	Write(ctx context.Context, writes ...Write) error
	// Document returns one; ErrNotFound.
	Document(ctx context.Context, kind Kind, id string) (Document, error)
	Documents(ctx context.Context, q DocumentQuery) ([]Document, error)
	// Sweep deletes expired documents. Its cost is proportional to them, so it may be
	// called often.
	Sweep(ctx context.Context) error
}

// Leases give runs exclusive write access to their connections.
type Leases interface {
	// Acquire atomically inserts the run record and the connection's lease, with the next
	// fence. *ActiveError if the connection has an active run. with are written in the same
	// commit, such as the schedule of the tick or the answer to an idempotent request.
	Acquire(ctx context.Context, r Run, hostID, bootEpoch string, ttl time.Duration, with ...Write) (Lease, error)
	// Renew sets the expiry of a lease to now + ttl; ErrFenced.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// TakeOver gives the lease of an active run to another holder, with the next fence, so
	// that the previous holder can no longer commit or renew. ErrFenced if l is not
	// current.
	TakeOver(ctx context.Context, l Lease, hostID, bootEpoch string, ttl time.Duration) (Lease, error)
	// Journal returns a piece of an active run's journal; ErrNotFound. Backups contain no
	// journals.
	Journal(ctx context.Context, id RunID, n uint64) ([]byte, error)
	// Leases lists the leases of all active runs.
	Leases(ctx context.Context) ([]Lease, error)
	// Submit queues c and returns at once unless the bounded queue is full; then it waits,
	// at most until ctx ends. The receipt settles when the commit is durable.
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
	// EventsBefore lists the newest limit events with Sequence < before, in order; before 0
	// means the end.
	EventsBefore(ctx context.Context, id RunID, before uint64, limit int) ([]Event, error)
	// RunHead returns the state of a run's timeline; ErrNotFound.
	RunHead(ctx context.Context, id RunID) (RunHead, error)
	// Watch returns a channel of capacity 1 that receives a wake-up after commits that
	// appended to the run's timeline, coalesced; "" watches all runs. stop releases the
	// channel.
	Watch(id RunID) (wake <-chan struct{}, stop func())
	// Prune deletes the timeline of a finished run and marks the run Pruned. ErrNotFound,
	// *ActiveError. Repeating it is no error. The first commit hides the timeline, as with
	// DeleteConnection.
	Prune(ctx context.Context, id RunID) error
}

// States are the cursors and gaps from which the next run of a connection continues.
type States interface {
	// States returns the committed cursors of one namespace.
	States(ctx context.Context, connection ConnectionID, grant GrantID) ([]State, error)
	// Staged returns the staged cursors of an active run.
	Staged(ctx context.Context, id RunID) ([]State, error)
	// ResetState deletes the cursor of one stream, or of all if stream is "". *ActiveError
	// while a run is active.
	ResetState(ctx context.Context, connection ConnectionID, grant GrantID, stream Stream) error
	// Gaps lists detail gaps of a namespace, oldest first. status "" means all.
	Gaps(ctx context.Context, connection ConnectionID, grant GrantID, status string) ([]DetailGap, error)
}

// Records are what runs collected, by connection and stream.
type Records interface {
	// Streams returns the counters of a connection's streams, by name.
	Streams(ctx context.Context, connection ConnectionID) ([]StreamStats, error)
	// Records lists one stream (RecordQuery, RecordPage). Only the current version of a key
	// is kept.
	Records(ctx context.Context, q RecordQuery) (RecordPage, error)
	// Record returns the current record or tombstone of a key; ErrNotFound.
	Record(ctx context.Context, connection ConnectionID, stream Stream, key string) (Record, error)
	// View opens a view of the records as of the newest commit, for an export.
	View(ctx context.Context) (View, error)
}
