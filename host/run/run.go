package run

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
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
		r.r.control.stop()
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

// parts is what a run consists of, beside what all of them read. Each part owns its
// state: the others call its methods and leave its fields alone. Only the run's own
// goroutine calls them, but for what is said to be guarded.
type parts struct {
	plan   *Plan
	deps   Deps
	id     store.RunID
	trace  store.TraceID
	ctx    context.Context // ends with the guest: handlers watch it
	guest  Guest           // nil before there is one
	proto  *abi.Protocol
	canary *redact.Canary
	clocks *clocks

	loop        *run         // waits and dispatches
	calls       *calls       // what the guest asks, and what it is answered
	records     *records     // admitted and not flushed
	states      *checkpoints // cursors accepted and not committed
	gaps        *gaps        // what is missing
	questions   *questions   // to the owner, that block
	assistances *assistances // to the owner, that do not
	browser     *browsing    // the browser binding
	secrets     *secrets     // handles and protected values
	output      *output      // log, messages and progress
	pause       *pause
	control     *control // what other goroutines see of the run and ask of it
	journal     *journal // events
	commits     *commits // on their way to the store
	lease       *lease
	outcome     *outcome  // how the run ends
	report      *report   // the result
	terminal    *terminal // the last commit
}

// run is the loop of a run. Only the goroutine in do touches it.
type run struct {
	*parts
	rec         store.Run
	cancels     chan CancelRequest
	stop        context.CancelFunc // ends ctx
	asker       context.Context    // of who asked for the run
	accepted    bool
	ticks       <-chan time.Time
	interrupted <-chan struct{} // nil once it was seen
}

func newRun(p *Plan, d Deps) *run {
	now := time.Now()
	all := &parts{plan: p, deps: d, id: NewRunID(now), trace: store.TraceID(hexID("trc_", 8)), canary: &redact.Canary{Off: p.Connection.LeakCanary == "off"}, clocks: &clocks{}}
	r := &run{parts: all, cancels: make(chan CancelRequest, 1)}
	all.loop = r
	all.journal, all.commits = &journal{parts: all}, &commits{parts: all, collected: func() {}}
	all.lease = &lease{parts: all, renewed: make(chan renewal, 1)}
	all.outcome, all.report, all.terminal = &outcome{parts: all}, &report{all}, &terminal{parts: all}
	all.calls = &calls{parts: all, finished: make(chan finishedCall, 1)}
	all.records, all.states, all.gaps = newRecords(all), &checkpoints{parts: all, cursors: cursors{}}, newGaps(all)
	all.questions = &questions{parts: all, answers: make(chan answer), asked: map[string]int{}}
	all.assistances = &assistances{parts: all, deadlines: map[string]time.Time{}}
	all.output = newOutput(all, now)
	all.pause, all.control = &pause{parts: all}, newControl()
	all.secrets = &secrets{parts: all}
	all.browser = newBrowsing(all)
	all.secrets.deliver()
	all.proto = abi.NewProtocol(abi.Contract{
		Scope: p.scope, Manifest: p.manifest, Records: scope.NewFilter(p.scope, p.manifest), Protected: all.records.protected,
		Interactive: p.Interactive, Stdio: p.Transport == "stdio", Limits: p.Limits,
		NewID: func() string { return hexID("asst_", 8) },
	})
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
	r.commits.begin()
	defer r.questions.wait()
	defer r.stop()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	r.ticks, r.interrupted = ticker.C, ctx.Done()
	whole := r.journal.begin()
	if r.deps.Network != nil {
		r.deps.Network.Waits(r.calls.waits)
	}
	if r.pause.queue(ctx) && r.launch(ctx) {
		r.loop()
	}
	result := r.finish()
	r.pause.release()
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
		if r.calls.again() {
			continue
		}
		in := calls
		if r.commits.full() {
			in = nil // back-pressure: the guest waits in its socket
		}
		if r.outcome.over() {
			in = calls // what it still sends is read and dropped
		}
		select {
		case c, ok := <-in:
			if !ok {
				r.left()
				return
			}
			r.calls.call(c)
		case <-r.commits.sent():
			r.commits.took()
		case <-r.commits.head():
			r.commits.settle()
		case f := <-r.calls.ended():
			r.calls.finishCall(f)
		case <-r.browser.word():
			r.browser.listen()
		case a := <-r.questions.answered():
			r.questions.take(a)
		case c := <-r.cancels:
			r.cancelRequested(c)
		case <-r.interrupted:
			r.interrupt()
		case <-r.control.woken():
			r.pause.steer(time.Now())
		case <-r.calls.woken():
			r.calls.wake()
		case now := <-r.ticks:
			r.tick(now)
		}
	}
}

func (r *run) ticking() <-chan time.Time { return r.ticks }

// row is the run's row, to be written.
func (r *run) row() *store.Run { return ptr(r.rec) }

// ended writes the end into the row: the log and the record say the same.
func (r *run) ended(status string, at time.Time, result json.RawMessage) *store.Run {
	r.rec.Status, r.rec.Phase, r.rec.FinishedAt, r.rec.Result = status, "", &at, result
	return r.row()
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
	r.commits.stalls(now)
	if r.outcome.over() {
		return
	}
	if r.outcome.leaving(now) {
		return
	}
	if !r.inTime(now) {
		return
	}
	if c := r.plan.grantFault(); c != nil && r.outcome.proposal() == nil { // it asks, waits and sends no further
		r.outcome.latch(c)
		return
	}
	if r.pause.on() {
		return
	}
	if r.control.wanted() {
		r.pause.steer(now)
	}
	r.assistances.assistanceTimeouts(now)
	r.questions.interactionTimeout(now)
	r.output.flushProgress(now, false)
	if r.outcome.lingers(now) {
		r.outcome.violate(&abi.Violation{Subtype: abi.VExitTimeoutAfterDone, MessageType: "DONE"})
	}
}

// leaving reports whether the run is being cancelled: the cancel came first, and
// nothing else decides now. A guest that stays beyond the grace is
// stopped.
func (o *outcome) leaving(now time.Time) bool {
	c := o.cancel
	if c != nil && now.After(c.until) && !c.forced && o.guest != nil {
		c.forced = true
		o.guest.Kill()
	}
	return c != nil
}

// inTime looks at the budgets and renews the lease. It reports whether the run
// goes on.
func (r *run) inTime(now time.Time) bool {
	r.commits.stalls(now)
	if name := r.clocks.over(r.plan.Budgets, now); name != "" {
		r.outcome.latch(&cause{reason: "run_timed_out", origin: "runtime", deadline: name, message: overText(name, r.plan.Budgets)})
		return false
	}
	r.lease.renew(now)
	return !r.outcome.over()
}

// lease is the run's lease.
type lease struct {
	*parts
	current  store.Lease
	renewAt  time.Time
	renewing bool
	renewed  chan renewal // capacity 1
}

// took begins the lease.
func (l *lease) took(current store.Lease) {
	l.current, l.renewAt = current, time.Now().Add(l.deps.LeaseRenew)
}

// sign makes a commit one of this run's holder, under its grant.
func (l *lease) sign(c *store.Commit) { c.Lease, c.Grant = l.current, l.plan.grant }

// A renewal is what the store said of the lease.
type renewal struct {
	lease store.Lease
	err   error
}

// renew keeps the lease; a run that lost it writes nothing more. One that
// had lapsed and was nobody's meanwhile is told of. It does not wait:
// a store whose disk is full answers when there is room.
func (l *lease) renew(now time.Time) {
	if l.renewing {
		l.renewal()
		return
	}
	if !now.After(l.renewAt) {
		return
	}
	l.renewAt, l.renewing = now.Add(l.deps.LeaseRenew), true
	current := l.current
	go func() {
		next, err := l.deps.Store.Renew(l.ctx, current, l.deps.LeaseTTL)
		l.renewed <- renewal{next, err}
	}()
}

// renewal takes the answer, when there is one.
func (l *lease) renewal() {
	select {
	case n := <-l.renewed:
		l.renewing = false
		lapsed := time.Now().After(l.current.ExpiresAt)
		switch {
		case n.err == nil:
			l.current = n.lease
			if lapsed && l.guest != nil {
				l.commits.submit(&store.Commit{Events: []store.Event{l.journal.event("lease.renewed", "in_progress", l.held())}}, nil)
			}
		case errors.Is(n.err, store.ErrFenced):
			lost := hostFault("renew lease", n.err)
			lost.fenced = true
			l.outcome.latch(lost)
		}
	default:
	}
}
