package run

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
)

// cancelCalls ends what the guest waits for when a cancel request arrives: requests in progress, its input, a
// sleep, and emits, which get no reply that could report it. A runtime that only sleeps again continues until
// its sleep is over or it is stopped after the grace period.
func (cl *calls) cancelCalls() {
	if cl.abort != nil {
		cl.abort()
	}
	cl.bindings.abort()
	cl.stdio.eof = true
	cl.serveStdin()
	if s := cl.sleeping; s != nil {
		s.timer.Stop()
		cl.sleeping = nil
	}
	if g, ok := cl.guest.(interface{ EndEmit(abi.Errno) error }); ok {
		if err := g.EndEmit(abi.ECANCELED); isChannelFault(err) {
			cl.outcome.latch(hostFault("end emits", err))
		}
	}
	if cl.open != 0 && !cl.async {
		cl.replyError(cl.open, abi.ECANCELED, "run_cancelled", "the run is being cancelled")
	}
}

// A sleeper is the sleep of a guest.
type sleeper struct {
	id    uint32
	until time.Time
	timer *time.Timer
}

const maxSleep = 365 * 24 * time.Hour

// sleep makes the guest wait. The time counts as the owner's while an assistance waits for the owner.
func (cl *calls) sleep(in sandbox.Inbound) {
	if len(in.Payload) != 8 {
		cl.replyError(in.ID, abi.EINVAL, "invalid_request", "sleep wants a duration")
		return
	}
	d := time.Duration(min(binary.LittleEndian.Uint64(in.Payload), uint64(maxSleep)))
	left, bounded := cl.clocks.ownerLeft(cl.plan.Budgets)
	now := time.Now()
	cl.clocks.begin(now, cl.assistances.ownerInvolved() && (!bounded || left > 0))
	if !cl.history.live() { // the sleep is over already
		cl.reply(in.ID, nil)
		return
	}
	cl.sleeping = &sleeper{in.ID, now.Add(d), time.NewTimer(d)}
}

// stopSleep stops the timer of the guest's sleep and returns the remaining time.
func (cl *calls) stopSleep(now time.Time) time.Duration {
	if cl.sleeping == nil {
		return 0
	}
	cl.sleeping.timer.Stop()
	return max(0, cl.sleeping.until.Sub(now))
}

// continueSleep continues the sleep.
func (cl *calls) continueSleep(now time.Time, left time.Duration) {
	if s := cl.sleeping; s != nil {
		s.until = now.Add(left)
		s.timer.Reset(left)
	}
}

// sleepEnded is signalled at the end of a sleep; nil if the guest does not sleep or is paused.
func (cl *calls) sleepEnded() <-chan time.Time {
	if cl.sleeping == nil || cl.pause.active() {
		return nil
	}
	return cl.sleeping.timer.C
}

func (cl *calls) wake() {
	id := cl.sleeping.id
	cl.sleeping = nil
	cl.reply(id, nil)
}

// reply answers a call with success.
func (cl *calls) reply(id uint32, payload []byte) { cl.send(callReply{id: id, payload: payload}) }

// replyError answers a call with an errno and its text.
func (cl *calls) replyError(id uint32, errno abi.Errno, code, message string) {
	cl.send(callReply{id: id, errno: errno, payload: errorText(code, message)})
}

// A callReply is the reply to a call.
type callReply struct {
	id      uint32
	errno   abi.Errno
	payload []byte
	result  bool // it is what the call came to outside of the loop, unchanged
}

// send replies to the open call. A call that was answered meanwhile, by a cancel, is ignored.
func (cl *calls) send(r callReply) {
	if cl.outcome.over() || r.id != cl.open {
		return
	}
	if cl.hold.active {
		r.payload = bytes.Clone(r.payload)
		cl.hold.reply = &r
		return
	}
	cl.open = 0
	cl.endCallSpan(time.Now())
	cl.clocks.touch()
	at, ok := cl.history.recordReply(r)
	if !ok {
		return
	}
	if err := cl.replyAt(r, at); isChannelFault(err) {
		cl.outcome.latch(hostFault("answer the guest", err))
	}
}

// replyAt replies with the time, if the guest has no clock of its own.
func (cl *calls) replyAt(r callReply, at uint64) error {
	if g, ok := cl.guest.(interface {
		ReplyAt(id uint32, errno abi.Errno, payload []byte, at uint64) error
	}); ok && at != 0 {
		return g.ReplyAt(r.id, r.errno, r.payload, at)
	}
	return cl.guest.Reply(r.id, r.errno, r.payload)
}

// endCallSpan ends the span of a call. While a question is open the time counts as the owner's. That includes stdio,
// where the guest continues and waits at its input.
func (cl *calls) endCallSpan(now time.Time) {
	if cl.questions.open() {
		cl.clocks.begin(now, true)
		return
	}
	cl.clocks.end(now)
}

func (cl *calls) credit(frames, bytes int) {
	if cl.outcome.over() {
		return
	}
	if cl.hold.active {
		cl.hold.frames, cl.hold.bytes = cl.hold.frames+frames, cl.hold.bytes+bytes
		return
	}
	cl.endCallSpan(time.Now())
	if err := cl.guest.Credit(frames, bytes); isChannelFault(err) {
		cl.outcome.latch(hostFault("give credit", err))
	}
}

// A hold keeps back what would let the guest continue, from before a call at which a pause may take effect until
// the end of the pause.
//
// Invariant: the length of calls is bounded by the guest's credit, none of which is returned meanwhile.
type hold struct {
	active        bool
	reply         *callReply
	frames, bytes int              // credit
	done          *abi.DoneMessage // a DONE that was the drain point, not handled yet
	doneCall      uint32
	calls         []sandbox.Inbound // calls that arrived since, in order
}

// releaseHeld releases what was held back. Calls that arrived meanwhile stay in hold, from which the loop handles them.
func (cl *calls) releaseHeld() {
	h := cl.hold
	cl.hold = hold{calls: h.calls}
	if h.frames > 0 {
		cl.credit(h.frames, h.bytes)
	}
	if h.done != nil {
		cl.handle(h.done, h.doneCall)
	}
	if h.reply != nil {
		cl.send(*h.reply)
	}
}

// dropHeld is releaseHeld for a run that is being cancelled, in which every call fails.
func (cl *calls) dropHeld() {
	cl.hold.reply, cl.hold.done = nil, nil
	cl.releaseHeld()
}

// nextHeldCall handles the next call that arrived during a pause. It reports whether there was one.
func (cl *calls) nextHeldCall() bool {
	if len(cl.hold.calls) == 0 || cl.hold.active {
		return false
	}
	in := cl.hold.calls[0]
	cl.hold.calls = slices.Delete(cl.hold.calls, 0, 1)
	cl.call(in)
	return true
}

// reportRateWait passes a wait of the call in progress to the loop, in order with the end of the call.
func (cl *calls) reportRateWait(origin string, until time.Time) {
	select {
	case cl.finished <- finishedCall{rateWait: &rateWait{origin: origin, until: until}}:
	case <-cl.ctx.Done():
	}
}

// finishedCalls returns the channel of calls that were handled outside of the loop.
func (cl *calls) finishedCalls() <-chan finishedCall { return cl.finished }

// atDrainPoint reports whether the guest is at a drain point: it waits, or has sent a STATE and nothing after it.
func (cl *calls) atDrainPoint() bool {
	return cl.sleeping != nil || cl.stdio.wants || cl.hold.done != nil || cl.stateAccepted
}

// awaitingReply reports whether a call awaits its reply.
func (cl *calls) awaitingReply() bool { return cl.open != 0 || cl.hold.active }

// holdBack starts holding back what would let the guest continue, until releaseHeld.
func (cl *calls) holdBack() { cl.hold.active = true }

// isAsync reports whether the call in progress is handled outside of the loop.
func (cl *calls) isAsync() bool { return cl.async }

// handleHeldCalls handles what a worker that is gone had sent during a pause.
func (cl *calls) handleHeldCalls() {
	held := cl.hold.calls
	cl.hold = hold{}
	for _, in := range held {
		cl.call(in)
	}
}

// begin keeps START until the guest asks for it.
func (cl *calls) begin(start []byte) { cl.start = start }

// sendStdioStart sends a stdio guest its START line.
func (cl *calls) sendStdioStart() {
	cl.feed(append(cl.start, '\n'), "start")
	cl.start = nil
}

// abortCall cancels the call that is handled outside of the loop.
func (cl *calls) abortCall() { cl.abort() }
