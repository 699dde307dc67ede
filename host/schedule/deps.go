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
	// StartScheduled returns once the run is durable, without waiting for its guest;
	// what With returns is in the same commit. *Refused when a pre-start
	// check says no, which leaves no trace; *store.ConflictError when a document was
	// not as With expected.
	StartScheduled(ctx context.Context, q Start) (store.Run, error)
	// RecordRefused makes the run of a start that was refused: one that consists of
	// run.failed with launch_failed. The run returned is over.
	RecordRefused(ctx context.Context, q Start, r *Refused) (store.Run, error)
}

// A Start is an automatic start.
type Start struct {
	Connection     store.ConnectionID
	Trigger        string // scheduled or retry
	Attempt        int
	RetryOf        store.RunID
	CatchUp        bool
	AutomationMode string
	// With is called with the run that is accepted, maybe more than once. It neither
	// blocks nor uses the store.
	With func(store.Run) []store.Write
}

// Refused is why a run was not started: by a code of run.Refusal.
type Refused struct {
	Code    string
	Message string
	Err     error
}

func (e *Refused) Error() string { return e.Code + ": " + e.Message }

func (e *Refused) Unwrap() error { return e.Err }

// A Source says what a connection is at this moment.
type Source interface {
	// ScheduledConnection returns store.ErrNotFound for one that is not there.
	ScheduledConnection(ctx context.Context, id store.ConnectionID) (Connection, error)
}

// A Connection is what gates look at.
type Connection struct {
	ConnectorID store.ConnectorID
	Grant       *store.Grant // nil is the owner's own
	Policy      Policy
	// NotReady is the first code of run.Refusal that refuses a start now, apart
	// from those of grant and active run; "" when none does.
	NotReady string
}

// Deps are what a Scheduler works with. Store, Starter and Source are needed.
type Deps struct {
	Store   Store
	Starter Starter
	Source  Source
	Now     func() time.Time    // the wall clock; nil is time.Now
	Rand    func(n int64) int64 // 0 to n-1; nil is math/rand
	Hosts   Hosts               // nil: no other host has the same schedules
	Log     *slog.Logger        // nil: none
	Done    func(host.Tick)     // after each history record is durable; nil for none
	// Shortest is the least interval of a schedule that is saved, in whole seconds
	// from 1 s; 0 is DefaultShortest. Stored schedules keep theirs.
	Shortest time.Duration
}

// Hosts are those that share a store and with it the schedules. Each of them runs a Scheduler:
// whoever is the first to move a due time on has it, and follows its run; what a host leaves
// open another one takes up.
type Hosts interface {
	// Self names this start of this host.
	Self() string
	// Alive reports whether a start of a host still goes on.
	Alive(ctx context.Context, self string) (bool, error)
	// Fits reports whether this host may take up the tick of a host that is gone: it has what the
	// connection needs, or no other one does.
	Fits(ctx context.Context, id store.ConnectionID) (bool, error)
	// Turn says how long this host leaves a due time to others; 0 when it is its turn.
	Turn(ctx context.Context, id store.ConnectionID, due time.Time) (time.Duration, error)
	// Changed wakes after a schedule or a host changed; some wake-ups are lost.
	Changed() (wake <-chan struct{}, stop func())
}

// alone is a host that shares nothing.
type alone struct{}

func (alone) Self() string                                { return "" }
func (alone) Alive(context.Context, string) (bool, error) { return false, nil }
func (alone) Turn(context.Context, store.ConnectionID, time.Time) (time.Duration, error) {
	return 0, nil
}
func (alone) Fits(context.Context, store.ConnectionID) (bool, error) { return true, nil }
func (alone) Changed() (<-chan struct{}, func())                     { return nil, func() {} }

// DefaultShortest is the least interval unless the owner sets another: a run
// starts a worker and may start a browser.
const DefaultShortest = 10 * time.Second
