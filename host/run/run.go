package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
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
	// Credit returns window for frames that were taken (G13).
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
	// Seal lets a handle stand for a value at the destinations (R160). forms are
	// the encodings in which answers may give it back (R163).
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
	// Echo has answers searched for encodings of a value (R163). It may be called
	// while Handle serves a call.
	Echo(handle string, forms [][]byte)
	// Uses yields, once each, where values have been sent since the last call
	// (R164).
	Uses(yield func(field, origin, placement string))
	// Waits has f told, while Handle serves a call, that a request waits for its
	// turn with an origin, and with a zero time that it goes on (S77).
	Waits(f func(origin string, until time.Time))
	Close() error
}

// A Launch is what the host needs to know to start the guest of a run.
type Launch struct {
	RunID store.RunID
	Name  string // args[0] (G15)
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
	// Handles are the random bytes of handles; nil for fresh ones. In a run that is
	// recorded or replayed they are those of its seed.
	Handles io.Reader
	// Owner answers questions; nil when the run is not interactive.
	Owner  Owner
	HostID string
	// BootEpoch is new at every start of the host (R189).
	BootEpoch string
	// Ended is called when a run that took the lease is over; nil for none.
	Ended func()
	// Watch sees every event once it is durable, in order; nil for none.
	Watch func(store.Event)
	// LeaseTTL and LeaseRenew default to 60 s and 15 s (R183).
	LeaseTTL, LeaseRenew time.Duration
}

// A Run is one attempt to collect. Do is called once; Cancel may be called
// from any goroutine, before, during and after it.
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

// A CancelRequest asks for the end of a run (§19.3).
type CancelRequest struct {
	Cause  string // owner, grant_revoked or host_policy
	Reason string
	By     string
}

// Cancel asks the run to end. It does not wait and may be repeated (R172).
func (r *Run) Cancel(c CancelRequest) {
	select {
	case r.r.cancels <- c:
	default: // one is waiting already: repeating changes nothing
	}
}

// Do performs the run to its end. The error is a *Refusal when the start lost
// the race for the connection or START is too large: then nothing was
// recorded. Everything else is in the result.
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

	ctx  context.Context // ends with the guest: handlers watch it (S27)
	stop context.CancelFunc

	clocks  clocks
	latched *cause
	done    *abi.DoneMessage
	exit    *sandbox.Exit
	cancel  *cancelling
	doneAt  time.Time

	records      records
	pending      []pendingCommit
	remembered   int // bytes, see remember
	pendingBytes int // of the batches in pending
	journal      journal
	states       staging
	gaps         gapList
	details      details
	coverage     []*abi.CoverageMessage
	skips        map[string]*KnownGap // latest skip_result by stream
	failed       map[string]bool      // data streams of a certified failure (R59)
	progress     progress
	asking       *asking
	asked        map[string]int // request_id -> uses (R136)
	owner        sync.WaitGroup // calls of Owner.Ask
	ownerTurn    sync.Mutex     // held during one
	assists      map[string]time.Time
	stdio        stdio
	sleeping     *sleeper
	turn         *turn // what the call in progress waits for
	canary       canary
	learned      learned
	diag         diagnostics
	text         messageText
	renewAt      time.Time
}

func newRun(p *Plan, d Deps) *run {
	now := time.Now()
	r := &run{
		plan: p, deps: d, id: NewRunID(now), trace: store.TraceID(hexID("trc_", 8)),
		cancels: make(chan CancelRequest, 1), answers: make(chan answer, 1), finished: make(chan finishedCall, 1),
		skips: map[string]*KnownGap{}, failed: map[string]bool{}, asked: map[string]int{}, assists: map[string]time.Time{},
	}
	r.canary.off = p.Connection.LeakCanary == "off"
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
		TriggerKind: p.Trigger, Attempt: max(1, p.Attempt), RetryOf: p.RetryOf,
	}
	return r
}

func (r *run) do(ctx context.Context) (*Result, error) {
	start, err := r.plan.start(r.id)
	if err != nil {
		return nil, asRefusal(err)
	}
	r.start = start
	r.lease, err = r.deps.Store.Acquire(ctx, r.rec, r.deps.HostID, r.deps.BootEpoch, r.deps.LeaseTTL)
	var active *store.ActiveError
	switch {
	case errors.As(err, &active):
		return nil, refuse("run_already_active", "connection %s is being collected by run %s", r.plan.Connection.ID, active.RunID).
			with("activeRunId", active.RunID)
	case errors.Is(err, store.ErrNoSpace):
		return nil, refuse("store_no_space", "%v; free some disk space and start again", err)
	case err != nil:
		return nil, asRefusal(fmt.Errorf("start run: %w", err))
	}
	if r.deps.Ended != nil {
		defer r.deps.Ended()
	}
	r.ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	defer r.owner.Wait()
	defer r.stop()
	now := time.Now()
	r.clocks.started, r.renewAt = now, now.Add(r.deps.LeaseRenew)
	if r.deps.Network != nil {
		r.deps.Network.Waits(r.waits)
	}
	if r.launch(ctx) {
		r.loop(ctx)
	}
	return r.finish(), nil
}

// launch brings the guest to its start line and makes run.started durable
// before it may cross it (R32). It reports whether there is a guest to run.
func (r *run) launch(ctx context.Context) bool {
	prepare, cancel := context.WithTimeout(ctx, orForever(r.plan.Budgets.Prepare))
	defer cancel()
	guest, files, err := r.deps.Launch(prepare, Launch{
		RunID: r.id, Name: r.plan.manifest.Name(), Env: r.plan.environment(), Stdio: r.plan.Transport == "stdio",
	})
	if err != nil && ctx.Err() != nil {
		r.cancelRequested(CancelRequest{Cause: "owner", Reason: "interrupted"})
		return false
	}
	if err != nil {
		r.latch(r.launchCause(err, prepare.Err()))
		return false
	}
	r.guest, r.files = guest, files
	r.commitStart()
	if r.latched == nil {
		if err := guest.Go(); err != nil {
			r.latch(hostFault("start guest", err))
		}
	}
	if r.latched != nil {
		guest.Kill()
	}
	if r.plan.Transport == "stdio" {
		r.proto.Step(abi.StepStart)
		r.stdio.feed(append(r.start, '\n'), "start")
		r.start = nil
	}
	return true
}

func orForever(d time.Duration) time.Duration {
	if d == 0 {
		return 1 << 62
	}
	return d
}

// tick is how often budgets are looked at.
const tick = 100 * time.Millisecond

// How many commits of a run, and bytes in them, may be on their way at once
// (S54). What one call adds comes on top.
const (
	window      = 64
	windowBytes = 12 * abi.MiB
)

// loop handles whatever comes until the worker is gone.
func (r *run) loop(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	calls := r.guest.Calls()
	ended := ctx.Done()
	for {
		in := calls
		if len(r.pending) >= window || r.pendingBytes >= windowBytes {
			in = nil // back-pressure: the guest waits in its socket (S25)
		}
		if r.latched != nil {
			in = calls // what it still sends is read and dropped
		}
		select {
		case c, ok := <-in:
			if !ok {
				r.exit = ptr(r.guest.Exit())
				return
			}
			r.call(c)
		case <-r.head():
			r.settle()
		case f := <-r.finished:
			r.finishCall(f)
		case a := <-r.answers:
			r.answered(a)
		case c := <-r.cancels:
			r.cancelRequested(c)
		case <-ended:
			ended = nil
			r.cancelRequested(CancelRequest{Cause: "owner", Reason: "interrupted"})
		case <-r.woken():
			r.wake()
		case now := <-ticker.C:
			r.tick(now)
		}
	}
}

// tick looks at everything that time can end.
func (r *run) tick(now time.Time) {
	r.clocks.sample(now, r.guest.Usage().CPU)
	if r.latched != nil {
		return
	}
	if r.cancel != nil { // the cancel came first: nothing else decides now (R105)
		if now.After(r.cancel.until) && !r.cancel.forced {
			r.cancel.forced = true
			r.guest.Kill()
		}
		return
	}
	if name := r.clocks.over(r.plan.Budgets, now); name != "" {
		r.latch(&cause{reason: "run_timed_out", origin: "runtime", deadline: name, message: overText(name, r.plan.Budgets)})
		return
	}
	if c := r.grantFault(); c != nil && r.done == nil { // it asks, waits and sends no further
		r.latch(c)
		return
	}
	r.assistanceTimeouts(now)
	r.interactionTimeout(now)
	r.flushProgress(now, false)
	if r.done != nil && !r.doneAt.IsZero() && now.Sub(r.doneAt) > r.plan.Budgets.ExitGrace {
		r.violate(&abi.Violation{Subtype: abi.VExitTimeoutAfterDone, MessageType: "DONE"})
	}
	if now.After(r.renewAt) {
		r.renew(now)
	}
}

// renew keeps the lease; a run that lost it writes nothing more (R183).
func (r *run) renew(now time.Time) {
	r.renewAt = now.Add(r.deps.LeaseRenew)
	l, err := r.deps.Store.Renew(r.ctx, r.lease, r.deps.LeaseTTL)
	switch {
	case err == nil:
		r.lease = l
	case errors.Is(err, store.ErrFenced):
		r.latch(hostFault("renew lease", err))
	}
}
