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

// steer looks at what was asked of the run: to pause or to go on.
func (r *run) steer(now time.Time) {
	if !r.ready() {
		return
	}
	if r.paused != nil {
		if q := r.control.resumes(); q != nil {
			r.resume(q)
		}
		return
	}
	if q := r.control.asked(); q != nil && r.drained(q, now) {
		r.pause()
	}
}

// drained reports whether the run is at a drain point of q: a guest
// call that reached the host, or better a STATE, a wait or DONE. After the time
// for that it is wherever the guest stands.
func (r *run) drained(q *pauseAsked, now time.Time) bool {
	switch {
	case r.asking != nil, r.sleeping != nil, r.turn != nil, r.stdio.wants, r.hold.done != nil, r.stated:
		return true
	case q.Policy == DrainImmediate && (r.open != 0 || r.hold.on):
		return true
	}
	return now.Sub(q.at) >= r.plan.Budgets.Drain
}

// drain ends a call that came while a pause is wanted: either it takes effect, or
// the guest goes on.
func (r *run) drain() {
	if q := r.control.asked(); q != nil && r.drained(q, time.Now()) {
		r.pause()
		return
	}
	r.goOn()
}

// pause takes effect: everything sent before is durable, then run.paused
// is, then nothing of the guest moves.
func (r *run) pause() {
	r.hold.on = true
	r.flushAll()
	if !r.barrier() {
		return
	}
	q := r.control.paused()
	if q == nil {
		r.goOn() // taken back
		return
	}
	d := data{"drainPolicy": q.Policy, "requestedBy": ownerOr(q.By)}
	d.set("reason", redact.Gap(q.Reason, 200))
	r.paused = &pausing{since: time.Now()}
	r.submit(&store.Commit{Events: []store.Event{by(q.By, r.event("run.paused", "paused", d))}}, nil)
	if !r.barrier() {
		return
	}
	r.stand(time.Now())
}

// stand stops the worker and every clock but that of the pause.
func (r *run) stand(now time.Time) {
	if g, ok := r.guest.(suspender); ok {
		if err := g.Suspend(); reachable(err) {
			r.latch(hostFault("suspend worker", err))
			return
		}
	}
	r.paused.since = now
	r.clocks.pause(now)
	if b := r.browser.open(); b != nil {
		b.Paused(true)
	}
	if s := r.sleeping; s != nil {
		s.timer.Stop()
		r.paused.sleep = max(0, s.until.Sub(now))
	}
	r.place()
}

// resume records that the run goes on, and lets it. Whoever answered meanwhile
// is heard now.
func (r *run) resume(q *resumeAsked) {
	now := time.Now()
	d := data{"cause": "owner"}
	d.set("reason", redact.Gap(q.Reason, 200))
	c := &store.Commit{Events: []store.Event{by(q.By, r.event("run.resumed", "in_progress", d))}}
	if id := r.paused.resolved; id != "" {
		c.Events = append(c.Events, r.nodeEvent("node.resumed", "in_progress", data{"interruptId": id}))
	}
	if a := r.asking; a != nil && a.timed {
		moved := *a.pending
		moved.ExpiresAt = ptr(a.deadline.Add(now.Sub(r.paused.since)))
		c.Ask, a.pending = &moved, &moved
	}
	r.submit(c, nil)
	if !r.barrier() {
		return
	}
	r.control.resumed()
	r.letRun()
	r.goOn()
}

// letRun ends the standstill: time goes on where it was.
func (r *run) letRun() {
	p := r.paused
	if p == nil {
		return
	}
	now := time.Now()
	stood := now.Sub(p.since)
	r.paused = nil
	r.clocks.resume(now)
	if b := r.browser.open(); b != nil {
		b.Paused(false)
	}
	if p.told != nil {
		p.told()
	}
	if r.asking != nil {
		r.asking.deadline = r.asking.deadline.Add(stood)
	}
	for id, at := range r.assists {
		r.assists[id] = at.Add(stood)
	}
	if s := r.sleeping; s != nil {
		s.until = now.Add(p.sleep)
		s.timer.Reset(p.sleep)
	}
	if g, ok := r.guest.(suspender); ok {
		if err := g.Resume(); reachable(err) {
			r.latch(hostFault("resume worker", err))
		}
	}
	r.place()
}

// goOn gives the guest what was kept back. Calls that came meanwhile follow from
// the loop.
func (r *run) goOn() {
	h := r.hold
	r.hold = hold{calls: h.calls}
	if h.frames > 0 {
		r.credit(h.frames, h.bytes)
	}
	if h.done != nil {
		r.handle(h.done, h.doneCall)
	}
	if h.reply != nil {
		r.send(h.reply.id, h.reply.errno, h.reply.payload)
	}
}

// dropHeld is goOn for a run that is being cancelled: every call fails.
func (r *run) dropHeld() {
	r.hold.reply, r.hold.done = nil, nil
	r.goOn()
}

// again handles a call that came while the run stood still; it reports whether
// there was one.
func (r *run) again() bool {
	if len(r.hold.calls) == 0 || r.hold.on {
		return false
	}
	in := r.hold.calls[0]
	r.hold.calls = slices.Delete(r.hold.calls, 0, 1)
	r.call(in)
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
