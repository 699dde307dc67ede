package run

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// pause handles pauses of the run and its slot.
type pause struct {
	*parts
	paused  *pauseState // nil if the run is not paused
	hasSlot bool        // the run has a slot, or has given it up while away
	away    bool
}

// A pauseState is a pause in effect.
type pauseState struct {
	since         time.Time
	sleep         time.Duration // rest of the guest's sleep
	resolved      string        // the interrupt that was answered during the pause
	notifyBrowser func()        // passes an answer to the browser after the pause; nil for none
}

// A suspender is a Guest whose worker can be suspended at any point.
type suspender interface {
	Suspend() error
	Resume() error
}

func (ps *pause) active() bool { return ps.paused != nil }

// end ends the pause of a run whose worker is gone.
func (ps *pause) end() { ps.paused = nil }

// rememberAnswer remembers a question that was answered during a pause, so that node.resumed follows run.resumed.
func (ps *pause) rememberAnswer(interrupt string) {
	if ps.paused != nil {
		ps.paused.resolved = interrupt
	}
}

// whenRunning calls f now or, during a pause, after it.
func (ps *pause) whenRunning(f func()) {
	if ps.paused != nil {
		ps.paused.notifyBrowser = f
		return
	}
	f()
}

// handleRequests handles requests to pause or to resume.
func (ps *pause) handleRequests(now time.Time) {
	if !ps.outcome.ready() || ps.history.replaying() {
		return
	}
	if ps.paused != nil {
		if q := ps.control.pendingResume(); q != nil {
			ps.resume(q)
		}
		return
	}
	if q := ps.control.pendingPause(); q != nil && ps.atDrainPoint(q, now) {
		ps.pause()
	}
}

// atDrainPoint reports whether the run is at a drain point for q: at a STATE, a wait or DONE or, for DrainImmediate,
// in any call. After Budgets.Drain, any point will do.
func (ps *pause) atDrainPoint(q *pauseRequest, now time.Time) bool {
	switch {
	case ps.questions.open(), ps.assistances.waiting(), ps.calls.atDrainPoint():
		return true
	case q.Policy == DrainImmediate && ps.calls.awaitingReply():
		return true
	}
	return now.Sub(q.at) >= ps.plan.Budgets.Drain
}

// drain is called after a call while a pause is requested. Either the pause takes effect, or the guest
// continues.
func (ps *pause) drain() {
	if q := ps.control.pendingPause(); q != nil && ps.atDrainPoint(q, time.Now()) {
		ps.pause()
		return
	}
	ps.calls.releaseHeld()
}

// pause puts the pause into effect: first everything sent before is made durable, then run.paused, then the
// guest is suspended.
func (ps *pause) pause() {
	ps.calls.holdBack()
	ps.records.flushAll()
	if !ps.loop.barrier() {
		return
	}
	q := ps.control.takePause()
	if q == nil {
		ps.calls.releaseHeld() // withdrawn
		return
	}
	d := data{"drainPolicy": q.Policy, "requestedBy": ownerOr(q.By)}
	d.set("reason", redact.Gap(q.Reason, 200))
	ps.paused = &pauseState{since: time.Now()}
	ps.loop.resumable(false) // it does not continue by itself while it is paused
	if ps.history.isResumable() && !ps.questions.open() {
		ps.loop.hostBound("it is paused")
	}
	ps.commits.submit(&store.Commit{Run: ps.loop.row(),
		Events: []store.Event{by(q.By, ps.journal.event("run.paused", "paused", d))}}, nil)
	if !ps.loop.barrier() {
		return
	}
	ps.suspendWorker(time.Now())
}

// suspendWorker suspends the worker and stops every clock but that of pauses.
func (ps *pause) suspendWorker(now time.Time) {
	if g, ok := ps.guest.(suspender); ok {
		if err := g.Suspend(); isChannelFault(err) {
			ps.outcome.latch(hostFault("suspend worker", err))
			return
		}
	}
	ps.paused.since = now
	ps.clocks.pause(now)
	each(ps.bindings, func(b binding.Pauser) { b.Paused(true) })
	ps.paused.sleep = ps.calls.stopSleep(now)
	ps.updateSlot()
}

// resume records the end of the pause and lets the run continue. An answer that arrived meanwhile is passed on
// now.
func (ps *pause) resume(q *resumeRequest) {
	now := time.Now()
	d := data{"cause": "owner"}
	d.set("reason", redact.Gap(q.Reason, 200))
	c := &store.Commit{Events: []store.Event{by(q.By, ps.journal.event("run.resumed", "in_progress", d))}}
	if id := ps.paused.resolved; id != "" {
		c.Events = append(c.Events, ps.journal.nodeEvent("node.resumed", "in_progress", data{"interruptId": id}))
	}
	c.Ask = ps.questions.postponed(now.Sub(ps.paused.since))
	if ps.loop.resumable(ps.history.isResumable()); ps.history.isResumable() && !ps.questions.open() {
		ps.loop.hostBound("")
	}
	c.Run = ps.loop.row()
	ps.commits.submit(c, nil)
	if !ps.loop.barrier() {
		return
	}
	ps.control.endPause()
	ps.continueRun()
	ps.calls.releaseHeld()
}

// continueRun ends the pause and restarts the clocks.
func (ps *pause) continueRun() {
	p := ps.paused
	if p == nil {
		return
	}
	now := time.Now()
	paused := now.Sub(p.since)
	ps.paused = nil
	ps.clocks.resume(now)
	each(ps.bindings, func(b binding.Pauser) { b.Paused(false) })
	if p.notifyBrowser != nil {
		p.notifyBrowser()
	}
	ps.questions.postpone(paused)
	ps.assistances.postpone(paused)
	ps.calls.continueSleep(now, p.sleep)
	if g, ok := ps.guest.(suspender); ok {
		if err := g.Resume(); isChannelFault(err) {
			ps.outcome.latch(hostFault("resume worker", err))
		}
	}
	ps.updateSlot()
}

// by sets the owner's principal as the actor of an event.
func by(principal string, e store.Event) store.Event {
	e.ActorType, e.ActorID = "owner", ownerOr(principal)
	return e
}

func ownerOr(principal string) string {
	return cmp.Or(principal, "owner")
}

// isChannelFault reports whether an error of the worker's channel is a fault. It is none if the worker is gone.
func isChannelFault(err error) bool { return err != nil && !errors.Is(err, sandbox.ErrGone) }

// Slots limit how many runs execute at once (host.runs). A value serves one run, and only the goroutine of that
// run calls it.
//
// A run acquires a slot before its guest is started and keeps it to the end, except while it waits for its owner
// or is paused: it uses no processor then, possibly for days.
type Slots interface {
	Acquire(ctx context.Context) error // waits for a slot
	Leave()                            // gives the slot up for a while
	Return()                           // takes a slot again at once, even beyond the limit
	Release()                          // gives the slot up for good; after Acquire, and not between Leave and Return
}

// waitForSlot waits for a slot. It reports whether the run may start.
func (ps *pause) waitForSlot(ctx context.Context) bool {
	if ps.deps.Slots == nil {
		return true
	}
	ps.control.change(func(l *Live) { l.Queued = true })
	err := ps.loop.whileRunning(ctx, ps.deps.Slots.Acquire)
	ps.control.change(func(l *Live) { l.Queued = false })
	ps.hasSlot = err == nil
	if err != nil && !ps.outcome.cancelled() {
		ps.outcome.latch(&cause{reason: "launch_failed", origin: "runtime", code: "host_resources",
			message: "No place to run: " + err.Error()})
	}
	return ps.outcome.ready()
}

// updateSlot gives up the slot while the run waits or is paused, and takes it again afterwards.
func (ps *pause) updateSlot() {
	away := ps.questions.open() || ps.paused != nil
	if !ps.hasSlot || away == ps.away {
		return
	}
	if ps.away = away; away {
		ps.deps.Slots.Leave()
	} else {
		ps.deps.Slots.Return()
	}
}

// release gives the slot up for good.
func (ps *pause) release() {
	if !ps.hasSlot {
		return
	}
	if ps.away {
		ps.deps.Slots.Return()
	}
	ps.deps.Slots.Release()
}
