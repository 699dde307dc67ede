// Package run is one run: it takes a resolved start, drives a guest through the run
// protocol and leaves one result and one timeline.
//
// A run is one goroutine, the loop (loop.go). Guest calls, store receipts, answers of
// the owner, timers and requests to end or pause reach it over channels and are handled
// one at a time, so that its state needs no locks. The state is that of its parts, each
// in a file of its own: records, checkpoints, gaps, questions, assistances, secrets,
// output, pause, journal, commits, lease, outcome, report and terminal. A part calls the
// methods of the others and leaves their fields alone (parts_test.go).
//
// Everything a guest can call stands on one page (calls.dispatch); whether a message is
// allowed is decided by abi.Protocol, which is pure.
//
// Accept makes a run durable, Do performs it. Others steer it with Cancel, Pause and
// Resume and look at it with Live; none of them waits for the run. A wait for the disk
// does not keep the run from being cancelled.
//
// The guest and every byte from it are hostile. The package trusts its Plan, which
// Prepare has checked, and the store's acknowledgements, and nothing else.
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

// A Guest is a worker that is ready to run one guest: *sandbox.Guest, or a
// script in tests.
type Guest interface {
	// Go lets the guest execute its first instruction.
	Go() error
	// Calls yields what the guest asks, in order; it is closed when the worker is gone.
	Calls() <-chan sandbox.Inbound
	// Reply answers the call with that id.
	Reply(id uint32, errno abi.Errno, payload []byte) error
	// Credit returns window for frames that were taken.
	Credit(frames, bytes int) error
	// Kill stops the worker at once; Calls is closed soon after.
	Kill()
	// Usage is a sample, at most 100 ms old.
	Usage() sandbox.Usage
	// Exit is valid once Calls is closed.
	Exit() sandbox.Exit
	Isolation() sandbox.Isolation
}

var _ Guest = (*sandbox.Guest)(nil)

// A Launch is what the host needs to know to start the guest of a run.
type Launch struct {
	RunID store.RunID
	Name  string // args[0]
	Env   []string
}

// Deps are the facilities a run uses.
type Deps struct {
	// ID is that of the run; "" is a new one.
	ID    store.RunID
	Store store.Store
	// Launch starts a worker and returns when the guest is ready, with the binding of
	// its files, nil for none. A *LaunchError
	// gives the failure_code.
	Launch func(context.Context, Launch) (Guest, binding.Binding, error)
	// Bindings are what the guest was lent beside its files; nil ones are left out. A
	// call goes to the first that takes it. The run closes them.
	Bindings []binding.Binding
	// Handles are the random bytes of handles; nil for fresh ones. In a run that is
	// recorded or replayed they are those of its seed.
	Handles io.Reader
	// History is the journal of what the guest is answered; nil for none. Handles, and the
	// clock and the random numbers of the guest, are then to be the same when it is resumed.
	History *History
	// Owner answers questions; nil when the run is not interactive.
	Owner  Owner
	HostID string
	// BootEpoch is new at every start of the host.
	BootEpoch string
	// Ended is called when a run that took the lease is over; nil for none.
	Ended func()
	// Watch sees every event once it is durable, in order; nil for none.
	Watch func(store.Event)
	// Slots are the places of runs that execute; nil for no limit.
	Slots Slots
	// Spans is told of what the run does, for traces; nil for nobody.
	Spans Spans
	// EngineVersion is the host's version, for run.started; "" for none.
	EngineVersion string
	// LeaseTTL and LeaseRenew default to 60 s and 15 s.
	LeaseTTL, LeaseRenew time.Duration
}

// A Run is one attempt to collect. Accept is called at most once, then Do, once.
// Cancel, Pause, Resume and Live may be called from any goroutine, before,
// during and after them.
type Run struct {
	ID store.RunID
	r  *run
}

// New makes a run of a plan.
func New(p *Plan, d Deps) *Run {
	d.Handles = cmp.Or(d.Handles, rand.Reader)
	if h := d.History; h != nil && h.Resume != nil {
		p.thaw(h.Resume.mark.Plan)
	}
	if d.LeaseTTL == 0 {
		d.LeaseTTL, d.LeaseRenew = time.Minute, 15*time.Second
	}
	r := newRun(p, d)
	return &Run{ID: r.id, r: r}
}

// CauseShutdown is the cause of a request that ends the run because its host
// stops: it fails with controller_restarted.
const CauseShutdown = "host_shutdown"

// CauseGuest is the cause of a cancelled run that its own connector gave up.
const CauseGuest = "guest"

// A CancelRequest asks for the end of a run.
type CancelRequest struct {
	Cause  string // owner, grant_revoked, host_policy or CauseShutdown
	Reason string
	By     string // principal, "" is owner for that cause
}

// Cancel asks the run to end. It does not wait and may be repeated.
func (r *Run) Cancel(c CancelRequest) {
	r.r.control.change(func(l *Live) { l.CancelRequested = l.Phase != "" })
	if c.Cause == CauseShutdown {
		r.r.control.stop()
	}
	select {
	case r.r.cancels <- c:
	default: // one is waiting already: repeating changes nothing
	}
}

// WentOn reports whether the run did what it had not done before: one that is being resumed has
// not. Any goroutine may call it.
func (r *Run) WentOn() bool { return r.r.control.going() }

// Do performs the run to its end; it accepts one that nobody accepted. The error
// is a *Refusal of Accept's: then nothing was recorded; or ErrSuspended: then the run is not over.
// Everything else is in the result.
func (r *Run) Do(ctx context.Context) (*Result, error) { return r.r.do(ctx) }
