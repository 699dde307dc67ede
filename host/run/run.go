package run

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/host/scope"
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

// Files serves the file calls of one guest; *filesystem.FS does.
type Files interface {
	Handle(ctx context.Context, call abi.Call, req []byte) ([]byte, abi.Errno)
	Close() error
}

// Network serves the calls of the network binding and of its handles for one
// guest; *network.Session does.
type Network interface {
	Handle(ctx context.Context, call abi.Call, req []byte) ([]byte, abi.Errno)
	// Seal lets a handle stand for a value at the destinations. forms are
	// the encodings in which answers may give it back.
	Seal(field, handle, value string, forms [][]byte, to []abi.Destination)
	// Protect keeps a value that the guest has in plain out of a recording.
	Protect(field, value string, forms [][]byte)
	// Fault says why the run cannot go on, or, once the guest is gone, why it does
	// not count: it is recorded or replayed, and that failed. Empty texts are no
	// reason.
	Fault(gone bool) (code, message string)
	// SealCurrent lets a handle stand for what from returns when a request is made,
	// or when a server refused an earlier value of it.
	SealCurrent(field, handle string, from func(ctx context.Context, refused string) (string, error), to []abi.Destination)
	// Echo has answers searched for encodings of a value. It may be called
	// while Handle serves a call.
	Echo(handle string, forms [][]byte)
	// SealTokens has values in answers become handles. mint
	// makes the nth of a field, from any goroutine, before the guest sees it.
	SealTokens(places []abi.SessionToken, mint func(field string, n int, value string) (handle string, forms [][]byte))
	// Uses yields, once each, where values have been sent since the last call
	//.
	Uses(yield func(field, origin, placement string))
	// Waits has f told, while Handle serves a call, that a request waits for its
	// turn with an origin, and with a zero time that it goes on.
	Waits(f func(origin string, until time.Time))
	// Abort ends the requests that are on their way, and those that follow. It
	// does not wait.
	Abort()
	Close() error
}

// A Launch is what the host needs to know to start the guest of a run.
type Launch struct {
	RunID store.RunID
	Name  string // args[0]
	Env   []string
	Stdio bool
}

// Deps are the facilities a run uses.
type Deps struct {
	Store store.Store
	// Launch starts a worker and returns when the guest is ready. A *LaunchError
	// gives the failure_code.
	Launch func(context.Context, Launch) (Guest, Files, error)
	// Network is what the guest's requests go to; nil refuses them all. The run
	// closes it.
	Network Network
	// Browser is the browser binding; nil where none is lent. The run closes it.
	Browser Browser
	// Handles are the random bytes of handles; nil for fresh ones. In a run that is
	// recorded or replayed they are those of its seed.
	Handles io.Reader
	// Owner answers questions; nil when the run is not interactive.
	Owner  Owner
	HostID string
	// BootEpoch is new at every start of the host.
	BootEpoch string
	// Ended is called when a run that took the lease is over; nil for none.
	Ended func()
	// Watch sees every event once it is durable, in order; nil for none.
	Watch func(store.Event)
	// Stalls is told why the store keeps the run waiting, and with "" that it does
	// so no longer; nil for nobody.
	Stalls func(message string)
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
	ID      store.RunID
	TraceID store.TraceID
	r       *run
}

// New makes a run of a plan.
func New(p *Plan, d Deps) *Run {
	if d.Handles == nil {
		d.Handles = rand.Reader
	}
	if d.LeaseTTL == 0 {
		d.LeaseTTL, d.LeaseRenew = time.Minute, 15*time.Second
	}
	r := newRun(p, d)
	return &Run{ID: r.id, TraceID: r.trace, r: r}
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
		r.r.control.stopping.Store(true)
	}
	select {
	case r.r.cancels <- c:
	default: // one is waiting already: repeating changes nothing
	}
}

// Do performs the run to its end; it accepts one that nobody accepted. The error
// is a *Refusal of Accept's: then nothing was recorded. Everything else is in the
// result.
func (r *Run) Do(ctx context.Context) (*Result, error) { return r.r.do(ctx) }

// run is the state of a run; only the goroutine in do touches it.
type run struct {
	plan  *Plan
	deps  Deps
	id    store.RunID
	trace store.TraceID
	lease store.Lease
	rec   store.Run

	guest Guest
	files Files
	abort context.CancelFunc // ends the call in progress outside of the loop; nil before the first
	proto *abi.Protocol
	start []byte

	cancels  chan CancelRequest
	answers  chan answer
	finished chan finishedCall

	ctx        context.Context // ends with the guest: handlers watch it
	stop       context.CancelFunc
	asker      context.Context // of who asked for the run
	collecting context.Context // ends when the run is to end: records that the store did not take by then are lost
	collected  context.CancelFunc

	clocks  clocks
	latched *cause
	done    *abi.DoneMessage
	exit    *sandbox.Exit
	cancel  *cancelling
	doneAt  time.Time

	records      records
	unsent       []*pendingCommit // not handed to the store
	sending      *pendingCommit   // on its way to the store; nil for none
	pending      []*pendingCommit // taken by the store
	stall        *stall           // nil while the store takes what comes
	saidStall    *stall           // whose assistance is open
	ending       bool             // the terminal event is being written
	remembered   int              // bytes, see remember
	pendingBytes int              // of the batches in these
	journal      journal
	states       staging
	gaps         gapList
	details      details
	coverage     []*abi.CoverageMessage
	skips        map[string]*KnownGap // latest skip_result by stream
	failed       map[string]bool      // data streams of a certified failure
	progress     progress
	asking       *asking
	asked        map[string]int // request_id -> uses
	owner        sync.WaitGroup // calls of Owner.Ask
	ownerTurn    sync.Mutex     // held during one
	browser      browsing
	assists      map[string]time.Time
	stdio        stdio
	sleeping     *sleeper
	turn         *turn // what the call in progress waits for
	canary       redact.Canary
	learned      learned
	diag         diagnostics
	text         messageText
	renewAt      time.Time
	renewing     bool
	renewed      chan renewal // capacity 1

	control     control
	accepted    bool
	placed      bool // it has a place of Slots, or away has it given away
	away        bool
	ticks       <-chan time.Time
	interrupted <-chan struct{} // nil once it was seen
	open        uint32          // the call that waits for its reply; 0 is none
	beside      bool            // it is being handled outside of the loop
	stated      bool            // the call in progress was an accepted STATE
	hold        hold
	paused      *pausing
	sequence    uint64          // of the next event
	node        span            // of the guest
	spanned     context.Context // of the run's span, or its node's
	lost        error           // why the terminal event is not durable
}

func newRun(p *Plan, d Deps) *run {
	now := time.Now()
	r := &run{
		plan: p, deps: d, id: NewRunID(now), trace: store.TraceID(hexID("trc_", 8)),
		cancels: make(chan CancelRequest, 1), answers: make(chan answer), finished: make(chan finishedCall, 1), renewed: make(chan renewal, 1),
		skips: map[string]*KnownGap{}, failed: map[string]bool{}, asked: map[string]int{}, assists: map[string]time.Time{},
	}
	r.collected = func() {} // nothing is, yet
	r.control.wake, r.control.live.Phase = make(chan struct{}, 1), "preparing"
	r.canary.Off = p.Connection.LeakCanary == "off"
	r.browser.begin(r)
	r.deliver()
	r.proto = abi.NewProtocol(abi.Contract{
		Scope: p.scope, Manifest: p.manifest, Records: scope.NewFilter(p.scope, p.manifest), Protected: r.protected,
		Interactive: p.Interactive, Stdio: p.Transport == "stdio", Limits: p.Limits,
		NewID: func() string { return hexID("asst_", 8) },
	})
	r.records = newRecords(p)
	r.states = staging{cursors: cursors{}}
	r.details = newDetails(p.gaps)
	for i := range p.gaps {
		r.remembered += gapBytes(&p.gaps[i])
	}
	r.progress.init(p.Limits, now)
	r.diag.init(p.Limits)
	r.rec = store.Run{
		ID: r.id, TraceID: r.trace, ConnectorID: p.Connector.ID, ConnectionID: p.Connection.ID, GrantID: p.grant,
		Digest: p.Connector.Digest, Status: "active", Phase: "preparing", StartedAt: now,
		TriggerKind: p.Trigger, Attempt: max(1, p.Attempt), RetryOf: p.RetryOf, Request: p.Request,
	}
	return r
}

func (r *run) do(ctx context.Context) (*Result, error) {
	if !r.accepted {
		if err := r.accept(ctx, nil); err != nil {
			return nil, err
		}
	}
	if r.deps.Ended != nil {
		defer r.deps.Ended()
	}
	r.asker = ctx
	r.ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.collecting, r.collected = context.WithCancel(r.ctx)
	defer r.owner.Wait()
	defer r.stop()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	r.ticks, r.interrupted = ticker.C, ctx.Done()
	var whole span
	r.spanned, whole = r.traced(r.ctx, "run")
	if r.deps.Network != nil {
		r.deps.Network.Waits(r.waits)
	}
	if r.queue(ctx) && r.launch(ctx) {
		r.loop()
	}
	result := r.finish()
	r.release()
	whole.end(result.err())
	return result, nil
}

func orForever(d time.Duration) time.Duration {
	if d == 0 {
		return 1 << 62
	}
	return d
}

// tick is how often budgets are looked at.
const tick = 100 * time.Millisecond

// How many commits of a run, and bytes in them, may be on their way at once.
// What one call adds comes on top.
const (
	window      = 64
	windowBytes = 12 * abi.MiB
)

// loop handles whatever comes until the worker is gone.
func (r *run) loop() {
	calls := r.guest.Calls()
	for {
		if r.again() {
			continue
		}
		in := calls
		if r.underway() >= window || r.pendingBytes >= windowBytes {
			in = nil // back-pressure: the guest waits in its socket
		}
		if r.latched != nil {
			in = calls // what it still sends is read and dropped
		}
		select {
		case c, ok := <-in:
			if !ok {
				r.left()
				return
			}
			r.call(c)
		case <-r.sent():
			r.took()
		case <-r.head():
			r.settle()
		case f := <-r.finished:
			r.finishCall(f)
		case <-r.browser.wake:
			r.listen()
		case a := <-r.answers:
			r.answered(a)
		case c := <-r.cancels:
			r.cancelRequested(c)
		case <-r.interrupted:
			r.interrupt()
		case <-r.control.wake:
			r.steer(time.Now())
		case <-r.woken():
			r.wake()
		case now := <-r.ticks:
			r.tick(now)
		}
	}
}

// interrupt is the end of the context that the run was started with.
func (r *run) interrupt() {
	r.interrupted = nil
	r.cancelRequested(interruption)
}

var interruption = CancelRequest{Cause: "owner", Reason: "interrupted"}

// tick looks at everything that time can end.
func (r *run) tick(now time.Time) {
	r.clocks.sample(now, r.guest.Usage().CPU)
	r.stalls(now)
	if r.latched != nil {
		return
	}
	if r.leaving(now) {
		return
	}
	if !r.inTime(now) {
		return
	}
	if c := r.grantFault(); c != nil && r.done == nil { // it asks, waits and sends no further
		r.latch(c)
		return
	}
	if r.paused != nil {
		return
	}
	if r.control.wants.Load() {
		r.steer(now)
	}
	r.assistanceTimeouts(now)
	r.interactionTimeout(now)
	r.flushProgress(now, false)
	if r.done != nil && !r.doneAt.IsZero() && now.Sub(r.doneAt) > r.plan.Budgets.ExitGrace {
		r.violate(&abi.Violation{Subtype: abi.VExitTimeoutAfterDone, MessageType: "DONE"})
	}
}

// leaving reports whether the run is being cancelled: the cancel came first, and
// nothing else decides now. A guest that stays beyond the grace is
// stopped.
func (r *run) leaving(now time.Time) bool {
	c := r.cancel
	if c != nil && now.After(c.until) && !c.forced && r.guest != nil {
		c.forced = true
		r.guest.Kill()
	}
	return c != nil
}

// inTime looks at the budgets and renews the lease. It reports whether the run
// goes on.
func (r *run) inTime(now time.Time) bool {
	r.stalls(now)
	if name := r.clocks.over(r.plan.Budgets, now); name != "" {
		r.latch(&cause{reason: "run_timed_out", origin: "runtime", deadline: name, message: overText(name, r.plan.Budgets)})
		return false
	}
	r.renew(now)
	return r.latched == nil
}

// A renewal is what the store said of the lease.
type renewal struct {
	lease store.Lease
	err   error
}

// renew keeps the lease; a run that lost it writes nothing more. One that
// had lapsed and was nobody's meanwhile is told of. It does not wait:
// a store whose disk is full answers when there is room.
func (r *run) renew(now time.Time) {
	if r.renewing {
		r.renewal()
		return
	}
	if !now.After(r.renewAt) {
		return
	}
	r.renewAt, r.renewing = now.Add(r.deps.LeaseRenew), true
	lease := r.lease
	go func() {
		l, err := r.deps.Store.Renew(r.ctx, lease, r.deps.LeaseTTL)
		r.renewed <- renewal{l, err}
	}()
}

// renewal takes the answer, when there is one.
func (r *run) renewal() {
	select {
	case n := <-r.renewed:
		r.renewing = false
		lapsed := time.Now().After(r.lease.ExpiresAt)
		switch {
		case n.err == nil:
			r.lease = n.lease
			if lapsed && r.guest != nil {
				r.submit(&store.Commit{Events: []store.Event{r.event("lease.renewed", "in_progress", r.held())}}, nil)
			}
		case errors.Is(n.err, store.ErrFenced):
			lost := hostFault("renew lease", n.err)
			lost.fenced = true
			r.latch(lost)
		}
	default:
	}
}
