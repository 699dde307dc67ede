package run

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/host/scope"
	"github.com/sluicehost/sluice/store"
)

// parts are the parts of a run and what all of them read. Each part owns its state: the others call its methods
// and do not access its fields. Only the run's own goroutine calls them, unless they are marked as guarded.
type parts struct {
	plan   *Plan
	deps   Deps
	id     store.RunID
	trace  store.TraceID
	ctx    context.Context // ends with the guest; handlers observe it
	guest  Guest           // nil before the launch
	proto  *abi.Protocol
	canary *redact.Canary
	clocks *clocks

	loop        *run         // waits for events and dispatches them
	calls       *calls       // calls of the guest and replies to them
	records     *records     // records that are admitted and not flushed yet
	states      *checkpoints // cursors accepted and not committed yet
	gaps        *gaps        // known gaps and missing details
	questions   *questions   // to the owner, blocking
	assistances *assistances // to the owner, not blocking
	bindings    *bindings    // what the run was lent
	secrets     *secrets     // handles and protected values
	files       *files       // files that the guest attached
	output      *output      // log, messages and progress
	pause       *pause
	control     *control // what other goroutines see of the run and request from it
	journal     *journal // events
	history     *history // what the guest was answered
	commits     *commits // not durable yet
	lease       *lease
	outcome     *outcome  // how the run ends
	report      *report   // the result
	terminal    *terminal // the last commit
}

// run is the loop of a run. Only the goroutine of do accesses it.
type run struct {
	*parts
	rec         store.Run
	cancels     chan CancelRequest
	stop        context.CancelFunc // ends ctx
	callerCtx   context.Context    // context of the caller that asked for the run
	accepted    bool
	ticks       <-chan time.Time
	interrupted <-chan struct{} // nil after it was handled
}

func newRun(p *Plan, d Deps) *run {
	now := time.Now()
	all := &parts{plan: p, deps: d, id: cmp.Or(d.ID, NewRunID(store.Now(d.Store))), trace: cmp.Or(d.TraceID, NewTraceID()),
		canary: &redact.Canary{Off: p.Connection.LeakCanary == "off"}, clocks: &clocks{}}
	r := &run{parts: all, cancels: make(chan CancelRequest, 1)}
	all.loop = r
	if h := d.History; h != nil && h.Resume != nil {
		all.trace = h.Resume.Run.TraceID
	}
	all.history = newHistory(all, d.History)
	all.journal, all.commits = &journal{parts: all}, &commits{parts: all, stopCollecting: func() {}}
	all.lease = &lease{parts: all, renewed: make(chan renewal, 1)}
	all.outcome, all.report, all.terminal = &outcome{parts: all}, &report{all}, &terminal{parts: all}
	all.calls = &calls{parts: all, finished: make(chan finishedCall, 1)}
	all.records, all.states, all.gaps = newRecords(all), &checkpoints{parts: all, cursors: cursors{}}, newGaps(all)
	all.questions = &questions{parts: all, answers: make(chan answer), requestIDUses: map[string]int{}}
	all.assistances = &assistances{parts: all, deadlines: map[string]time.Time{}}
	all.output = newOutput(all, now)
	all.pause, all.control = &pause{parts: all}, newControl()
	all.secrets = &secrets{parts: all}
	all.files = newFiles(all)
	all.bindings = newBindings(all)
	all.secrets.deliver()
	all.proto = abi.NewProtocol(abi.Contract{
		Scope: p.scope, Manifest: p.manifest, Records: scope.NewFilter(p.scope, p.manifest), Protected: all.records.protected,
		Interactive: p.Interactive, Stdio: p.Transport == "stdio", Limits: p.Limits,
		NewID: func() string { return "asst_" + hex.EncodeToString(randomOf(d.Handles, 8)) }, // repeated in a resumed run
	})
	r.rec = store.Run{
		ID: r.id, TraceID: r.trace, ConnectorID: p.Connector.ID, ConnectionID: p.Connection.ID, GrantID: p.grant,
		Digest: p.Connector.Digest, Status: "active", Phase: "preparing", StartedAt: store.Now(d.Store),
		TriggerKind: p.Trigger, Attempt: max(1, p.Attempt), RetryOf: p.RetryOf, Request: p.Request,
	}
	if all.history.replaying() {
		r.rec = d.History.Resume.Run
	} else {
		all.control.setProgressed()
		if s := p.manifest.Sluice; s != nil && s.Resumable {
			r.rec.HostBound = all.history.hostBoundReason()
		}
	}
	r.rec.HostID = d.HostID
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
	r.callerCtx = ctx
	r.ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.commits.begin()
	defer r.questions.wait()
	defer r.stop()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	r.ticks, r.interrupted = ticker.C, ctx.Done()
	whole := r.journal.begin()
	each(r.bindings, func(b binding.Requester) { b.OnRateWait(r.calls.reportRateWait) })
	if r.pause.waitForSlot(ctx) && r.launch(ctx) {
		r.loop()
	}
	if r.history.finishSuspend() {
		r.releaseSuspended()
		whole.end(nil)
		return nil, ErrSuspended
	}
	result := r.finish()
	r.pause.release()
	whole.end(result.err())
	return result, nil
}

// tick is the interval at which budgets are checked.
const tick = 100 * time.Millisecond

// Limits of the commits of a run that are not durable yet, and of the bytes in them. What one call adds may
// exceed them.
const (
	window      = 64
	windowBytes = 12 * abi.MiB
)

// loop handles events until the worker is gone.
func (r *run) loop() {
	calls := r.guest.Calls()
	for {
		if r.calls.nextHeldCall() {
			continue
		}
		in := calls
		if r.commits.full() {
			in = nil // back-pressure: calls stay in the guest's socket
		}
		if r.outcome.over() {
			in = calls // what it still sends is read and dropped
		}
		select {
		case c, ok := <-in:
			if !ok {
				r.workerExited()
				return
			}
			r.calls.call(c)
		case <-r.commits.acceptedSignal():
			r.commits.handleAccepted()
		case <-r.commits.oldestDone():
			r.commits.settle()
		case f := <-r.calls.finishedCalls():
			r.calls.finishCall(f)
		case <-r.bindings.reportSignal():
			r.bindings.handleReports()
		case a := <-r.questions.answered():
			r.questions.handleAnswer(a)
		case c := <-r.cancels:
			r.cancelRequested(c)
		case <-r.interrupted:
			r.interrupt()
		case <-r.control.wakeSignal():
			r.pause.handleRequests(time.Now())
		case <-r.calls.sleepEnded():
			r.calls.wake()
		case now := <-r.ticks:
			r.tick(now)
		}
	}
}

func (r *run) ticking() <-chan time.Time { return r.ticks }

// row returns a copy of the run's row, to be written.
func (r *run) row() *store.Run { return new(r.rec) }

// age returns how long ago the run started, possibly at another host.
func (r *run) age() time.Duration { return store.Now(r.deps.Store).Sub(r.rec.StartedAt) }

// storeTime converts a time of this machine's clock to one of the store's clock; here does the reverse.
func (p *parts) storeTime(at time.Time) time.Time { return store.Now(p.deps.Store).Add(time.Until(at)) }

func (p *parts) localTime(at time.Time) time.Time {
	return time.Now().Add(at.Sub(store.Now(p.deps.Store)))
}

// resumable sets whether the run continues after its host. The caller writes the row.
func (r *run) resumable(on bool) {
	r.rec.Resumable = on
	r.control.change(func(l *Live) { l.Resumable = on })
}

// hostBound sets why the run ends with its host, "" if it does not. The caller writes the row.
func (r *run) hostBound(why string) { r.rec.HostBound = why }

// boundBy returns what hostBound set.
func (r *run) boundBy() string { return r.rec.HostBound }

// setEnd sets the end of the run in its row, and returns a copy.
func (r *run) setEnd(status string, at time.Time, result json.RawMessage) *store.Run {
	r.rec.Status, r.rec.Phase, r.rec.FinishedAt, r.rec.Result = status, "", &at, result
	return r.row()
}

// interrupt handles the end of the context with which the run was started.
func (r *run) interrupt() {
	r.interrupted = nil
	r.cancelRequested(interruption)
}

var interruption = CancelRequest{Cause: "owner", Reason: "interrupted"}

// tick checks all time limits.
func (r *run) tick(now time.Time) {
	used := r.guest.Usage()
	r.clocks.sample(now, used.CPU)
	owner, _ := r.clocks.waited()
	r.control.recordUsage(r.age(), used.MemoryBytes, owner, r.clocks.pausedBy(now))
	r.commits.checkStall(now)
	if r.outcome.over() {
		return
	}
	if r.outcome.withinCancelGrace(now) {
		return
	}
	if !r.inTime(now) {
		return
	}
	if r.history.silent(now) {
		return
	}
	// finds the end of the journal if the guest only computes
	if r.history.replaying() && r.history.live() && !r.outcome.ready() {
		return
	}
	if c := r.plan.grantFault(store.Now(r.deps.Store)); c != nil && r.outcome.proposal() == nil { // it must not ask, wait or send any more
		r.outcome.latch(c)
		return
	}
	if r.pause.active() {
		return
	}
	if r.control.pausePending() {
		r.pause.handleRequests(now)
	}
	r.assistances.assistanceTimeouts(now)
	r.questions.interactionTimeout(now)
	r.output.flushProgress(now, false)
	r.history.suspendIfIdle(now)
	r.history.suspendIfLeaving(now, false)
	if r.outcome.exceedsExitGrace(now) {
		r.outcome.violate(&abi.Violation{Subtype: abi.VExitTimeoutAfterDone, MessageType: "DONE"})
	}
}

// inTime checks the budgets and renews the lease. It reports whether the run continues.
func (r *run) inTime(now time.Time) bool {
	r.commits.checkStall(now)
	if c := r.clocks.exceeded(r.plan.Budgets, now); c != nil {
		r.outcome.latch(c)
		return false
	}
	r.lease.renew(now)
	return !r.outcome.over()
}

// barrier waits until everything submitted is durable or has failed, and reports whether nothing has ended the
// run. Meanwhile it checks budgets, renews the lease, and handles requests to end the run, all of which may end
// the wait. If it reports false, the caller leaves the call unanswered.
func (r *run) barrier() bool {
	for r.commits.unsettled() > 0 && r.outcome.ready() {
		r.await(true, func(now time.Time) {
			if r.guest != nil {
				r.clocks.sample(now, r.guest.Usage().CPU)
			}
			r.inTime(now)
		})
	}
	return r.outcome.ready()
}

// settled waits until everything submitted is durable or has failed. While the disk is full, which may take
// long, it handles requests to end the run, and gives up if nobody waits for the run any more.
func (r *run) settled() {
	for r.commits.unsettled() > 0 {
		r.await(r.commits.stalled(), func(now time.Time) {
			r.commits.checkStall(now)
			if r.abandonsStalled() {
				r.commits.abandon()
			}
		})
	}
}

// await handles one response of the store or one tick or, if ends is set, a request to end the run.
func (r *run) await(ends bool, tick func(now time.Time)) {
	cancels, interrupted := r.cancels, r.interrupted
	if !ends {
		cancels, interrupted = nil, nil
	}
	select {
	case <-r.commits.acceptedSignal():
		r.commits.handleAccepted()
	case <-r.commits.oldestDone():
		r.commits.settle()
	case c := <-cancels:
		r.cancelRequested(c)
	case <-interrupted:
		r.interrupt()
	case now := <-r.ticks:
		tick(now)
	}
}

// abandonsStalled reports whether a stalled run is given up, because nobody waits for it any more.
func (r *run) abandonsStalled() bool {
	return r.commits.stalled() && (r.callerCtx != nil && r.callerCtx.Err() != nil || r.control.stopped())
}

// waitWhileStalled performs f, which commits the end of a run and may take as long as the disk is full. It returns
// errAbandoned if the run is given up meanwhile. If the disk is not full, f's context ends after within.
func (r *run) waitWhileStalled(within time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ticks := r.ticks
	if ticks == nil { // the run never began
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		ticks = ticker.C
	}
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	until := time.Now().Add(within)
	for {
		select {
		case err := <-done:
			return err
		case now := <-ticks:
			r.commits.checkStall(now)
			switch {
			case r.abandonsStalled():
				return errAbandoned
			case r.commits.stalled():
				until = now.Add(within)
			case now.After(until):
				cancel()
			}
		}
	}
}

// whileRunning performs f, which may take long, before there is a guest. It renews the lease, and a request to end
// the run cancels f's context. It returns when f has returned.
func (r *run) whileRunning(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case c := <-r.cancels:
			r.cancelRequested(c)
		case <-r.interrupted:
			r.interrupt()
		case now := <-r.ticks:
			if !r.outcome.over() {
				r.lease.renew(now)
				r.history.silent(now)
			}
		}
		if !r.outcome.ready() {
			cancel()
		}
	}
}

// releaseSuspended releases what a suspended run holds in this process, except for its bindings, which the
// caller releases.
func (r *run) releaseSuspended() {
	r.bindings.abort()
	r.stop()
	r.settled()
	r.journal.endNode(nil)
	r.control.change(func(l *Live) { l.Phase = "" })
	r.pause.release()
}

// workerExited handles the end of the worker.
func (r *run) workerExited() {
	r.outcome.setExit(r.guest.Exit())
	r.history.guestExited(r.guest.Exit())
	r.bindings.handleReports()
	r.clocks.resume(time.Now())
	r.pause.end()
	r.calls.handleHeldCalls()
}

// phase returns the phase of the run for events and its row.
func (r *run) phase() string {
	switch {
	case r.guest == nil:
		return "preparing"
	case r.questions.open():
		return "waiting"
	case r.outcome.proposal() != nil:
		return "finishing"
	}
	return "running"
}

// stage sets the phase of the run to running or waiting.
func (r *run) stage(phase string) {
	r.rec.Phase = phase
	if r.history.replaying() && r.deps.History.Resume.Open.ID != "" {
		phase = "waiting" // whatever its guest does during the replay
	}
	r.control.phase(phase)
	r.control.setWaiting(r.history.waitingSince(phase))
}

// revoked handles a pending request to cancel, so that a revocation ends the run as cancelled even if the store
// refuses a flush first. It reports whether the run is being cancelled.
func (r *run) revoked() bool {
	select {
	case c := <-r.cancels:
		r.cancelRequested(c)
	default:
	}
	return r.outcome.cancelled()
}

// repeatCancel repeats a request to end the run.
func (r *run) repeatCancel(c CancelRequest) {
	select {
	case r.cancels <- c:
	default: // another one is pending
	}
}

// cancelRequested handles a request to end the run. A cancellation takes precedence over DONE until the terminal
// commit begins.
func (r *run) cancelRequested(c CancelRequest) {
	if !r.outcome.ready() {
		return
	}
	if c.Cause == CauseShutdown {
		if r.history.trySuspend("host_stopped") {
			return
		}
		r.outcome.latch(&cause{reason: ReasonRestarted, origin: "runtime",
			message: restarted("The host was stopped while the run was active.", r.rec)})
		return
	}
	r.control.change(func(l *Live) { l.CancelRequested = true })
	if r.history.deferCancel(c) {
		return
	}
	d := data{"cancel_cause": c.Cause, "trigger_kind": r.plan.Trigger}
	d.set("requested_by", c.By)
	d.set("reason", redact.Gap(c.Reason, 200))
	e := r.journal.event("run.cancel_requested", "cancel_requested", d)
	if c.Cause == "owner" {
		e = by(c.By, e)
	}
	cancel := r.outcome.cancelBy(c)
	r.commits.stopRecords()
	if r.guest == nil {
		cancel.event = &e
		return
	}
	r.history.makeNotResumable() // a host that is killed now must not have the next one resume it
	r.commits.record(e)
	r.control.endPause()
	r.pause.continueRun() // a paused worker gets its grace period too
	r.calls.dropHeld()
	r.questions.cancel()
	r.proto.End()
	r.calls.cancelCalls()
}
