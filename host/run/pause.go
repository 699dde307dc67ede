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

// pause is the run's standstill, and its place among those that execute.
type pause struct {
	*parts
	paused *pausing // nil while the run goes on
	placed bool     // it has a place of Slots, or away has it given away
	away   bool
}

// pausing is a pause in effect.
type pausing struct {
	since    time.Time
	sleep    time.Duration // that is left of the guest's sleep
	resolved string        // the interrupt that was answered meanwhile
	told     func()        // tells the browser of an answer of meanwhile; nil for none
}

// A suspender is a Guest whose worker can be stopped where it stands.
type suspender interface {
	Suspend() error
	Resume() error
}

func (ps *pause) on() bool { return ps.paused != nil }

// end is that of a run whose worker is gone.
func (ps *pause) end() { ps.paused = nil }

// answered remembers a question that was answered during a pause: node.resumed follows run.resumed.
func (ps *pause) answered(interrupt string) {
	if ps.paused != nil {
		ps.paused.resolved = interrupt
	}
}

// afterwards calls f now, or after the pause.
func (ps *pause) afterwards(f func()) {
	if ps.paused != nil {
		ps.paused.told = f
		return
	}
	f()
}

// steer looks at what was asked of the run: to pause or to go on.
func (ps *pause) steer(now time.Time) {
	if !ps.outcome.ready() || ps.history.replaying() {
		return
	}
	if ps.paused != nil {
		if q := ps.control.resumes(); q != nil {
			ps.resume(q)
		}
		return
	}
	if q := ps.control.asked(); q != nil && ps.drained(q, now) {
		ps.pause()
	}
}

// drained reports whether the run is at a drain point of q: a guest
// call that reached the host, or better a STATE, a wait or DONE. After the time
// for that it is wherever the guest stands.
func (ps *pause) drained(q *pauseAsked, now time.Time) bool {
	switch {
	case ps.questions.open(), ps.assistances.waiting(), ps.calls.standing():
		return true
	case q.Policy == DrainImmediate && ps.calls.underway():
		return true
	}
	return now.Sub(q.at) >= ps.plan.Budgets.Drain
}

// drain ends a call that came while a pause is wanted: either it takes effect, or
// the guest goes on.
func (ps *pause) drain() {
	if q := ps.control.asked(); q != nil && ps.drained(q, time.Now()) {
		ps.pause()
		return
	}
	ps.calls.goOn()
}

// pause takes effect: everything sent before is durable, then run.paused
// is, then nothing of the guest moves.
func (ps *pause) pause() {
	ps.calls.holdBack()
	ps.records.flushAll()
	if !ps.loop.barrier() {
		return
	}
	q := ps.control.paused()
	if q == nil {
		ps.calls.goOn() // taken back
		return
	}
	d := data{"drainPolicy": q.Policy, "requestedBy": ownerOr(q.By)}
	d.set("reason", redact.Gap(q.Reason, 200))
	ps.paused = &pausing{since: time.Now()}
	ps.loop.resumable(false) // it does not go on by itself while its owner has it stand still
	if ps.history.goesOnAfter() && !ps.questions.open() {
		ps.loop.hostBound("it is paused")
	}
	ps.commits.submit(&store.Commit{Run: ps.loop.row(), Events: []store.Event{by(q.By, ps.journal.event("run.paused", "paused", d))}}, nil)
	if !ps.loop.barrier() {
		return
	}
	ps.stand(time.Now())
}

// stand stops the worker and every clock but that of the pause.
func (ps *pause) stand(now time.Time) {
	if g, ok := ps.guest.(suspender); ok {
		if err := g.Suspend(); reachable(err) {
			ps.outcome.latch(hostFault("suspend worker", err))
			return
		}
	}
	ps.paused.since = now
	ps.clocks.pause(now)
	each(ps.bindings, func(b binding.Pauser) { b.Paused(true) })
	ps.paused.sleep = ps.calls.stopSleep(now)
	ps.place()
}

// resume records that the run goes on, and lets it. Whoever answered meanwhile
// is heard now.
func (ps *pause) resume(q *resumeAsked) {
	now := time.Now()
	d := data{"cause": "owner"}
	d.set("reason", redact.Gap(q.Reason, 200))
	c := &store.Commit{Events: []store.Event{by(q.By, ps.journal.event("run.resumed", "in_progress", d))}}
	if id := ps.paused.resolved; id != "" {
		c.Events = append(c.Events, ps.journal.nodeEvent("node.resumed", "in_progress", data{"interruptId": id}))
	}
	c.Ask = ps.questions.postponed(now.Sub(ps.paused.since))
	if ps.loop.resumable(ps.history.goesOnAfter()); ps.history.goesOnAfter() && !ps.questions.open() {
		ps.loop.hostBound("")
	}
	c.Run = ps.loop.row()
	ps.commits.submit(c, nil)
	if !ps.loop.barrier() {
		return
	}
	ps.control.resumed()
	ps.letRun()
	ps.calls.goOn()
}

// letRun ends the standstill: time goes on where it was.
func (ps *pause) letRun() {
	p := ps.paused
	if p == nil {
		return
	}
	now := time.Now()
	stood := now.Sub(p.since)
	ps.paused = nil
	ps.clocks.resume(now)
	each(ps.bindings, func(b binding.Pauser) { b.Paused(false) })
	if p.told != nil {
		p.told()
	}
	ps.questions.postpone(stood)
	ps.assistances.postpone(stood)
	ps.calls.sleepOn(now, p.sleep)
	if g, ok := ps.guest.(suspender); ok {
		if err := g.Resume(); reachable(err) {
			ps.outcome.latch(hostFault("resume worker", err))
		}
	}
	ps.place()
}

// by names the principal that an event is due to.
func by(principal string, e store.Event) store.Event {
	e.ActorType, e.ActorID = "owner", ownerOr(principal)
	return e
}

func ownerOr(principal string) string {
	return cmp.Or(principal, "owner")
}

// reachable reports whether an error of the worker's channel is a fault: a worker
// that is gone is none.
func reachable(err error) bool { return err != nil && !errors.Is(err, sandbox.ErrGone) }

// Slots are the places of runs that execute (host.runs of the limits). One
// value serves one run, and is called by that run's goroutine alone.
//
// A run takes a place before its guest is started and has it to the end, but not
// while it waits for its owner or is paused: then it uses no processor, and may
// do so for days.
type Slots interface {
	Acquire(ctx context.Context) error // waits for a place
	Leave()                            // the place is free for another
	Return()                           // it goes on at once, also beyond the limit
	Release()                          // the end; after Acquire, and not while away
}

// queue waits for a place.
func (ps *pause) queue(ctx context.Context) bool {
	if ps.deps.Slots == nil {
		return true
	}
	ps.control.change(func(l *Live) { l.Queued = true })
	err := ps.loop.meanwhile(ctx, ps.deps.Slots.Acquire)
	ps.control.change(func(l *Live) { l.Queued = false })
	ps.placed = err == nil
	if err != nil && !ps.outcome.cancelled() {
		ps.outcome.latch(&cause{reason: "launch_failed", origin: "runtime", code: "host_resources", message: "No place to run: " + err.Error()})
	}
	return ps.outcome.ready()
}

// place gives the run's place away while it waits, and takes it back.
func (ps *pause) place() {
	away := ps.questions.open() || ps.paused != nil
	if !ps.placed || away == ps.away {
		return
	}
	if ps.away = away; away {
		ps.deps.Slots.Leave()
	} else {
		ps.deps.Slots.Return()
	}
}

// release gives the place up.
func (ps *pause) release() {
	if !ps.placed {
		return
	}
	if ps.away {
		ps.deps.Slots.Return()
	}
	ps.deps.Slots.Release()
}
