package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Store is the part of store.Store that a Scheduler needs.
type Store interface {
	Write(ctx context.Context, writes ...store.Write) error
	Document(ctx context.Context, kind store.Kind, id string) (store.Document, error)
	Documents(ctx context.Context, q store.DocumentQuery) ([]store.Document, error)
	Leases(ctx context.Context) ([]store.Lease, error)
	Run(ctx context.Context, id store.RunID) (store.Run, error)
	Runs(ctx context.Context, connection store.ConnectionID, before store.RunID, limit int) ([]store.Run, error)
	Events(ctx context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error)
	Watch(id store.RunID) (wake <-chan struct{}, stop func())
}

// A Starter starts automatic runs.
type Starter interface {
	// StartScheduled returns once the run is durable, without waiting for its guest. What With
	// returns is in the same commit. It returns *Refused if a pre-start check fails, which leaves
	// no trace, and *store.ConflictError if a document was not as With expected.
	StartScheduled(ctx context.Context, q Start) (store.Run, error)
	// RecordRefused records a refused start as a run that consists of run.failed with
	// launch_failed. The returned run is over.
	RecordRefused(ctx context.Context, q Start, r *Refused) (store.Run, error)
}

// maxStarts bounds the starts that are being made at once: each loads a module and asks the store
// many things, and a thousand that are due in one second would all be late, and take its memory.
const maxStarts = 16

// A boundedStarter makes at most maxStarts starts at once.
type boundedStarter struct {
	Starter
	places chan struct{}
}

func (s boundedStarter) StartScheduled(ctx context.Context, q Start) (store.Run, error) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return store.Run{}, ctx.Err()
	}
	return s.Starter.StartScheduled(ctx, q)
}

// A Start is an automatic start.
type Start struct {
	Connection     store.ConnectionID
	Trigger        string // scheduled or retry
	Attempt        int
	RetryOf        store.RunID
	CatchUp        bool
	AutomationMode string
	// With is called with the accepted run, possibly more than once. It must not block or use the
	// store.
	With func(store.Run) []store.Write
}

// Refused says why a run was not started, by a code of run.Refusal.
type Refused struct {
	Code    string
	Message string
	Err     error
}

func (e *Refused) Error() string { return e.Code + ": " + e.Message }

func (e *Refused) Unwrap() error { return e.Err }

// A Source returns the current state of a connection.
type Source interface {
	// ScheduledConnection returns store.ErrNotFound for a missing connection.
	ScheduledConnection(ctx context.Context, id store.ConnectionID) (Connection, error)
}

// A Connection is what the gates check.
type Connection struct {
	ConnectorID store.ConnectorID
	Grant       *store.Grant // nil is the owner's own grant
	Policy      Policy
	// NotReady is the first code of run.Refusal that refuses a start now, apart from those about
	// grant and active run, or "" if there is none.
	NotReady string
}

// Deps are the dependencies of a Scheduler. Store, Starter and Source are required.
type Deps struct {
	Store   Store
	Starter Starter
	Source  Source
	Now     func() time.Time    // the wall clock; nil is time.Now
	Rand    func(n int64) int64 // 0 to n-1; nil is math/rand
	Hosts   Hosts               // nil: no other host has the same schedules
	Log     *slog.Logger        // nil: none
	Done    func(host.Tick)     // called after each history record is durable; may be nil
	// Shortest is the least interval accepted for a schedule, in whole seconds from 1 s; 0 is
	// DefaultShortest. Stored schedules keep theirs.
	Shortest time.Duration
}

// Hosts are the hosts that share a store and its schedules. Each runs a Scheduler; the first to
// advance a due time owns the tick and follows its run, and another host takes over what a host
// leaves open.
type Hosts interface {
	// Self identifies this start of this host.
	Self() string
	// Alive reports whether a start of a host is still running.
	Alive(ctx context.Context, self string) (bool, error)
	// Fits reports whether this host may take over a tick of a host that is gone: it has what the
	// connection needs, or no other host does.
	Fits(ctx context.Context, id store.ConnectionID) (bool, error)
	// Turn returns how long this host leaves a due time to others, or 0 if it is its turn.
	Turn(ctx context.Context, id store.ConnectionID, due time.Time) (time.Duration, error)
	// Changed wakes after a schedule or a host changed; some wake-ups may be lost.
	Changed() (wake <-chan struct{}, stop func())
}

// alone is a host that shares no store.
type alone struct{}

func (alone) Self() string                                { return "" }
func (alone) Alive(context.Context, string) (bool, error) { return false, nil }
func (alone) Turn(context.Context, store.ConnectionID, time.Time) (time.Duration, error) {
	return 0, nil
}
func (alone) Fits(context.Context, store.ConnectionID) (bool, error) { return true, nil }
func (alone) Changed() (<-chan struct{}, func())                     { return nil, func() {} }

// DefaultShortest is the least interval unless the owner sets another, since each run starts a
// worker and possibly a browser.
const DefaultShortest = 10 * time.Second
