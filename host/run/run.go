// Package run performs one run: it takes a resolved start, drives a guest through the run protocol, and produces
// one result and one timeline.
//
// A run is one goroutine, the loop (loop.go). Guest calls, store receipts, answers of the owner, timers and
// requests to end or pause reach it over channels and are handled one at a time, so its state needs no locks.
// The state is divided into parts, each in its own file: records, checkpoints, gaps, questions, assistances,
// secrets, output, pause, journal, commits, lease, outcome, report and terminal. A part calls the methods of the
// others and does not access their fields (parts_test.go).
//
// Every call of a guest is handled in calls.dispatch. Whether a message is allowed is decided by abi.Protocol,
// which does no I/O.
//
// Accept makes a run durable, and Do performs it. Cancel, Pause and Resume control it and Live shows its state;
// none of them waits for the run. A run can be cancelled even while it waits for the disk.
//
// The guest and every byte from it are hostile. The package trusts only its Plan, which Prepare has checked, and
// the acknowledgements of the store.
package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// A Guest is a worker that is ready to run one guest: a *sandbox.Guest, or a script in tests.
type Guest interface {
	// Go starts the execution of the guest.
	Go() error
	// Calls returns the calls of the guest, in order. The channel is closed when the worker is gone.
	Calls() <-chan sandbox.Inbound
	// Reply answers the call with the given id.
	Reply(id uint32, errno abi.Errno, payload []byte) error
	// Credit returns credit for frames that were taken.
	Credit(frames, bytes int) error
	// Kill stops the worker. Calls is closed soon after.
	Kill()
	// Usage returns a sample that is at most 100 ms old.
	Usage() sandbox.Usage
	// Exit returns how the worker ended. It is valid once Calls is closed.
	Exit() sandbox.Exit
	Isolation() sandbox.Isolation
}

var _ Guest = (*sandbox.Guest)(nil)

// A Launch has what the host needs to start the guest of a run.
type Launch struct {
	RunID store.RunID
	Name  string // args[0]
	Env   []string
}

// Deps are the facilities a run uses.
type Deps struct {
	// ID and TraceID are those of the run; "" means new ones.
	ID      store.RunID
	TraceID store.TraceID
	Store   store.Store
	// Launch starts a worker. It returns when the guest is ready, with the binding of its files, nil for none. A
	// *LaunchError sets the failure_code.
	Launch func(context.Context, Launch) (Guest, binding.Binding, error)
	// Bindings are the bindings that the guest was lent, except for its files; nil ones are ignored. A call goes
	// to the first binding that takes it. The run closes them.
	Bindings []binding.Binding
	// Handles is the source of random bytes for handles; nil means crypto/rand. In a run that is recorded or
	// replayed it is derived from the seed.
	Handles io.Reader
	// History configures the journal of what the guest is answered; nil means none. With a journal, Handles and
	// the clock and random numbers of the guest must be the same when the run is resumed.
	History *History
	// Owner answers questions; nil when the run is not interactive.
	Owner  Owner
	HostID string
	// BootEpoch identifies this start of the host.
	BootEpoch string
	// Ended is called when a run that took the lease is over. It may be nil.
	Ended func()
	// Watch gets every event once it is durable, in order. It may be nil.
	Watch func(store.Event)
	// Slots limits the runs that execute at once; nil means no limit.
	Slots Slots
	// Spans traces what the run does; nil means no tracing.
	Spans Spans
	// EngineVersion is the version of the host, for run.started; "" means none.
	EngineVersion string
	// LeaseTTL and LeaseRenew are the lifetime of a lease and the interval of renewals, by default 60 s and 15
	// s.
	LeaseTTL, LeaseRenew time.Duration
}

// A Run is one attempt to collect. Accept is called at most once, then Do once. Cancel, Pause, Resume and Live
// may be called from any goroutine at any time.
type Run struct {
	ID store.RunID
	r  *run
}

// New returns the run of a plan. For a resumed run it modifies p.
func New(p *Plan, d Deps) *Run {
	d.Handles = cmp.Or(d.Handles, rand.Reader)
	if h := d.History; h != nil && h.Resume != nil {
		p.restore(h.Resume.mark.Plan)
	}
	if d.LeaseTTL == 0 {
		d.LeaseTTL, d.LeaseRenew = time.Minute, 15*time.Second
	}
	r := newRun(p, d)
	return &Run{ID: r.id, r: r}
}

// CauseShutdown is the cause of a request that ends the run because its host is stopping. The run fails with
// controller_restarted, or is suspended.
const CauseShutdown = "host_shutdown"

// CauseGuest is the cause of a run that its connector cancelled.
const CauseGuest = "guest"

// A CancelRequest asks for the end of a run.
type CancelRequest struct {
	Cause  string // owner, grant_revoked, host_policy or CauseShutdown
	Reason string
	By     string // principal; "" means owner if that is the cause
}

// Cancel asks the run to end. It does not wait and may be repeated.
func (r *Run) Cancel(c CancelRequest) {
	r.r.control.change(func(l *Live) { l.CancelRequested = l.Phase != "" })
	if c.Cause == CauseShutdown {
		r.r.control.stop()
	}
	select {
	case r.r.cancels <- c:
	default: // one is pending already
	}
}

// Progressed reports whether the run has made progress beyond its journal, which a run that is still being resumed
// has not. It may be called from any goroutine.
func (r *Run) Progressed() bool { return r.r.control.hasProgressed() }

// Accepted reports whether Accept succeeded. It must not be called during Accept.
func (r *Run) Accepted() bool { return r.r.accepted }

// Do performs the run to its end, and accepts it first if needed. The error is a *Refusal of Accept, and nothing
// was recorded then, or ErrSuspended, and the run is not over then. Everything else is in the result.
func (r *Run) Do(ctx context.Context) (*Result, error) { return r.r.do(ctx) }
