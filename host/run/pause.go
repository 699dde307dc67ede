package run

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
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

// hold keeps back what would let the guest go on: from before the call that a
// pause may take effect at, to its end.
//
// Invariant: calls is bounded by the credit of the guest, none of which is
// returned meanwhile.
type hold struct {
	on            bool
	reply         *heldReply
	frames, bytes int              // credit
	done          *abi.DoneMessage // a DONE that was the drain point, unprocessed
	doneCall      uint32
	calls         []sandbox.Inbound // what arrived since, in order
}

type heldReply struct {
	id      uint32
	errno   abi.Errno
	payload []byte
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
	if !ps.outcome.ready() {
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
	ps.commits.submit(&store.Commit{Events: []store.Event{by(q.By, ps.journal.event("run.paused", "paused", d))}}, nil)
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
	if b := ps.browser.open(); b != nil {
		b.Paused(true)
	}
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
	if b := ps.browser.open(); b != nil {
		b.Paused(false)
	}
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

// goOn gives the guest what was kept back. Calls that came meanwhile follow from
// the loop.
func (cl *calls) goOn() {
	h := cl.hold
	cl.hold = hold{calls: h.calls}
	if h.frames > 0 {
		cl.credit(h.frames, h.bytes)
	}
	if h.done != nil {
		cl.handle(h.done, h.doneCall)
	}
	if h.reply != nil {
		cl.send(h.reply.id, h.reply.errno, h.reply.payload)
	}
}

// dropHeld is goOn for a run that is being cancelled: every call fails.
func (cl *calls) dropHeld() {
	cl.hold.reply, cl.hold.done = nil, nil
	cl.goOn()
}

// again handles a call that came while the run stood still; it reports whether
// there was one.
func (cl *calls) again() bool {
	if len(cl.hold.calls) == 0 || cl.hold.on {
		return false
	}
	in := cl.hold.calls[0]
	cl.hold.calls = slices.Delete(cl.hold.calls, 0, 1)
	cl.call(in)
	return true
}

// keep holds a reply back.
func (h *hold) keep(id uint32, errno abi.Errno, payload []byte) {
	h.reply = &heldReply{id, errno, bytes.Clone(payload)}
}

// by names the principal that an event is due to.
func by(principal string, e store.Event) store.Event {
	e.ActorType, e.ActorID = "owner", ownerOr(principal)
	return e
}

func ownerOr(principal string) string {
	if principal == "" {
		return "owner"
	}
	return principal
}

// reachable reports whether an error of the worker's channel is a fault: a worker
// that is gone is none.
func reachable(err error) bool { return err != nil && !errors.Is(err, sandbox.ErrGone) }
