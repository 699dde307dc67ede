package run

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
)

// call is everything a guest can ask of the host, in the order of the contract.
// Each case ends with a reply, a credit, or a latched cause.
func (r *run) call(in sandbox.Inbound) {
	if r.latched != nil {
		in.Release()
		return
	}
	if r.paused != nil {
		r.hold.calls = append(r.hold.calls, in)
		return
	}
	r.clocks.begin(time.Now(), r.asking != nil)
	if !in.Call.Pipelined() {
		r.open = in.ID
	}
	if r.cancel != nil {
		r.callCancelled(in)
		in.Release()
		return
	}
	r.stated, r.hold.on = false, r.control.wants.Load()
	if !r.dispatch(in) {
		in.Release()
	}
	if r.hold.on && r.ready() {
		r.drain()
	}
}

// dispatch is the switch; it reports whether the payload is still needed.
func (r *run) dispatch(in sandbox.Inbound) (kept bool) {
	switch c := in.Call; c {
	case abi.CallStart:
		if v := r.proto.Step(abi.StepStart); v != nil {
			r.violate(v)
			break
		}
		r.reply(in.ID, r.start)
		r.start = nil // it is asked for once
	case abi.CallEmit:
		r.emit(in.Payload)
		r.credit(1, len(in.Payload))
	case abi.CallCheckpoint, abi.CallProgress, abi.CallSkip, abi.CallGap, abi.CallRecovered,
		abi.CallCoverage, abi.CallInteract, abi.CallAssist, abi.CallAssistStatus, abi.CallDone:
		m, v := r.proto.Message(c, in.Payload)
		if v != nil {
			r.violate(v)
			break
		}
		r.handle(m, in.ID)
	case abi.CallMessage, abi.CallLog:
		r.sideMessage(c, in)
	case abi.CallNetworkRequest, abi.CallNetworkExchange, abi.CallBrowser, abi.CallRead, abi.CallClose:
		kept = r.sideCall(in)
	case abi.CallStdout:
		kept = r.lines(in, in.Payload)
	case abi.CallStdin:
		r.stdin(in)
	case abi.CallStdinEnd:
		r.stdio.closed = true
		r.reply(in.ID, nil)
	case abi.CallDiag:
		if len(in.Payload) > 1 {
			r.diagnosed(in.Payload[1:])
		}
		r.reply(in.ID, nil)
	case abi.CallSleep:
		r.sleep(in)
	case abi.CallFault:
		r.fault(in.Payload)
	default:
		kept = r.fileCall(in)
	}
	return kept
}

// handle acts on a valid message. call is 0 on stdio, where a write is
// answered by its own call.
func (r *run) handle(m abi.Message, call uint32) {
	r.clocks.touch()
	switch m := m.(type) {
	case *abi.RecordMessage:
		r.admit(m)
		return
	case *abi.StateMessage:
		if !r.checkpoint(m) {
			return
		}
		r.stated = true
	case *abi.ProgressMessage:
		r.progressed(m)
	case *abi.SkipMessage:
		r.skip(m)
	case *abi.GapMessage:
		r.detailGap(m)
	case *abi.RecoveredMessage:
		if !r.detailRecovered(m) {
			return
		}
	case *abi.CoverageMessage:
		r.coverageDeclared(m)
	case *abi.InteractionMessage:
		r.interact(m, call)
		return // answered by closeQuestion
	case *abi.AssistanceMessage:
		r.assist(m)
		if call != 0 {
			r.reply(call, []byte(`{"assistance_request_id":`+string(abi.AppendQuote(nil, m.ID))+`}`))
		}
		return
	case *abi.AssistanceStatusMessage:
		r.assistStatus(m)
	case *abi.TextMessage:
		r.message(m.Chunk, m.Last, m.Meta)
	case *abi.RequestMessage, *abi.ReadMessage:
		r.stdio.exchange.line = m // its turn is when the line is done with
	case *abi.DoneMessage:
		if r.hold.on { // a drain point, unprocessed until resume
			r.hold.done, r.hold.doneCall = m, call
			return
		}
		if !r.doneReceived(m) {
			return
		}
	}
	if call != 0 {
		r.reply(call, nil)
	}
}

// emit takes a frame, record by record; those before a fault stand.
func (r *run) emit(frame []byte) {
	fr, v := r.proto.Frame(frame)
	if v != nil {
		r.violate(v)
		return
	}
	var rec abi.FrameRecord
	now := time.Now().UnixMicro() // one look at the clock for the whole frame
	for fr.Next(&rec) {
		m, v := r.proto.Record(&rec)
		if v != nil {
			r.violate(v)
			return
		}
		if m.EmittedAt == 0 {
			m.EmittedAt = now
		}
		if r.admit(m); !r.ready() {
			return
		}
	}
	if err := fr.Err(); err != nil {
		r.violate(r.proto.FrameFault(err))
	}
	r.clocks.touch()
}

// doneReceived is DONE on receipt: a proposal, not a latch.
func (r *run) doneReceived(m *abi.DoneMessage) bool {
	r.done = m
	if m.Status == abi.Succeeded {
		r.flushAll()
	}
	if !r.barrier() {
		return false
	}
	r.control.phase("finishing")
	r.stdio.eof = true
	r.serveStdin()
	r.doneAt = time.Now()
	return true
}

// sideMessage is message and log: allowed in any phase before DONE, never able
// to change state.
func (r *run) sideMessage(c abi.Call, in sandbox.Inbound) {
	typ := "MESSAGE"
	if c == abi.CallLog {
		typ = "LOG"
	}
	v, bad := r.proto.Side(typ, in.Payload)
	if bad != nil {
		r.violate(bad)
		return
	}
	if c == abi.CallLog {
		level, _ := v.Member("level")
		message, _ := v.Member("message")
		fields, _ := v.Member("fields")
		name, okLevel := level.Text()
		text, okText := message.Text()
		switch name {
		case "debug", "info", "warn", "error":
		default:
			okLevel = false
		}
		if !okLevel || !okText || len(text) > r.plan.Limits.TextBytes {
			r.replyError(in.ID, abi.EINVAL, "invalid_request", "log wants a level (debug, info, warn, error) and a message of at most 8 KiB")
			return
		}
		r.logged(name, text, fields)
		r.reply(in.ID, nil)
		return
	}
	chunk, _ := v.Member("chunk")
	text, ok := chunk.Text()
	last, _ := v.Member("is_last")
	isLast, isBool := last.Bool()
	if !ok || !isBool && !last.Absent() {
		r.replyError(in.ID, abi.EINVAL, "invalid_request", "message wants a chunk text and is_last true or false")
		return
	}
	meta, _ := v.Member("meta")
	r.message(text, isLast, meta)
	r.reply(in.ID, nil)
}

// sideCall takes calls of bindings and of handles, which are no messages.
func (r *run) sideCall(in sandbox.Inbound) (kept bool) {
	if v := r.proto.Step(abi.StepSide); v != nil {
		r.violate(v)
		return false
	}
	switch network := r.deps.Network; {
	case r.browser.takes(in):
		r.browser.calling = true
		r.outside(in, r.deps.Browser.Handle)
		return true
	case in.Call == abi.CallBrowser:
		r.deny(in.ID, "browser_not_granted", "the browser binding is not offered to this run")
	case network != nil:
		r.outside(in, network.Handle)
		return true
	case in.Call == abi.CallNetworkRequest, in.Call == abi.CallNetworkExchange:
		r.deny(in.ID, "binding_not_approved", "no host is approved for this connection")
	default:
		r.replyError(in.ID, abi.ENOENT, "unknown_handle", "there is no such handle")
	}
	return false
}

// outside has a call handled beside the loop: it may wait for a disk or a
// server. The payload is released when it is finished.
func (r *run) outside(in sandbox.Inbound, handle func(context.Context, abi.Call, []byte) ([]byte, abi.Errno)) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.abort, r.beside = cancel, true
	span := r.tracedActivity(in.Call)
	go func() {
		reply, errno := handle(ctx, in.Call, in.Payload)
		span.errno(errno)
		select {
		case r.finished <- finishedCall{in: in, reply: reply, errno: errno}:
		case <-r.ctx.Done():
		}
	}()
}

// deny is a denial: an errno for the guest and a line for the owner.
func (r *run) deny(id uint32, code, message string) {
	r.logged("warn", "denied: "+message, abi.Value{})
	r.replyError(id, abi.EDENIED, code, message)
}

// denied tells the owner of a denial that a binding decided.
func (r *run) denied(reply []byte) {
	v, err := abi.Parse(reply, abi.ParseOptions{})
	if err != nil {
		return
	}
	if m, ok := v.Member("message"); ok {
		text, _ := m.Text()
		r.logged("warn", "denied: "+text, abi.Value{})
	}
}

// deniedOf tells the owner of the denials among the answers of an exchange.
func (r *run) deniedOf(answers []byte) {
	for len(answers) > 0 {
		a, rest, err := abi.NextAnswer(answers)
		if err != nil {
			return
		}
		if a.Errno == abi.EDENIED {
			r.denied(a.Reply)
		}
		answers = rest
	}
}

// fault is a request the worker refused before copying it.
func (r *run) fault(payload []byte) {
	f, err := abi.ParseRequestFault(payload)
	if err != nil {
		r.latch(&cause{reason: "worker_protocol_error", origin: "runtime", message: "The worker reported a malformed fault."})
		return
	}
	if f.Kind == abi.FaultTooBig {
		r.violate(r.proto.Fault(abi.VFrameTooLarge, abi.MessageType(f.Call), "limit "+itoa(r.plan.Limits.FrameBytes)))
		return
	}
	r.violate(&abi.Violation{Subtype: abi.VAbiFault, MessageType: abi.MessageType(f.Call), Detail: "a pointer outside of memory"})
}

// A finishedCall is a call that was handled outside of the loop, or with a turn
// one that is on its way.
type finishedCall struct {
	in    sandbox.Inbound
	reply []byte
	errno abi.Errno
	turn  *turn
}

// taped ends a run that is recorded or replayed when that failed.
func (r *run) taped(gone bool) {
	if r.deps.Network == nil || r.cancel != nil {
		return
	}
	if code, message := r.deps.Network.Fault(gone); code != "" {
		r.latch(&cause{reason: code, origin: "connector", message: r.canary.Text(message)})
	}
}

// fileCall hands a call to the file guard, which may wait for a disk. It keeps
// the payload until then.
func (r *run) fileCall(in sandbox.Inbound) (kept bool) {
	if in.Call < abi.CallFileOpen || in.Call > abi.CallFileTimes || r.files == nil {
		r.replyError(in.ID, abi.ENOTSUP, "unsupported", "this host does not know that call")
		return false
	}
	r.outside(in, r.files.Handle)
	return true
}

func (r *run) finishCall(f finishedCall) {
	if f.turn != nil {
		r.takeTurn(f.turn)
		return
	}
	r.takeTurn(&turn{})
	f.in.Release()
	r.abort()
	r.beside, r.browser.calling = false, false
	r.listen() // what a binding said in a call comes before its reply
	switch f.in.Call {
	case abi.CallNetworkRequest, abi.CallNetworkExchange:
		r.taped(false)
		r.learned.each(r.canary.Protect)
		r.sealedUses()
		switch {
		case f.errno == abi.EDENIED:
			r.denied(f.reply)
		case f.errno == abi.OK && f.in.Call == abi.CallNetworkExchange:
			r.deniedOf(f.reply)
		}
	case abi.CallBrowser:
		if f.errno == abi.EDENIED {
			r.denied(f.reply)
		}
	}
	if r.stdio.exchange.id != "" {
		r.lineAnswered(f)
		return
	}
	if r.cancel != nil {
		f.errno = abi.ECANCELED
		f.reply = nil
	}
	r.send(f.in.ID, f.errno, f.reply)
}

// callCancelled answers a call after a cancel request: everything fails, and
// what the guest says goes unread.
func (r *run) callCancelled(in sandbox.Inbound) {
	switch in.Call {
	case abi.CallEmit:
		r.credit(1, len(in.Payload))
	case abi.CallDiag:
		if len(in.Payload) > 1 {
			r.diagnosed(in.Payload[1:])
		}
		r.reply(in.ID, nil)
	case abi.CallStdin:
		r.stdin(in)
	case abi.CallSleep:
		r.sleep(in) // for as long as it says: a runtime that wakes early only asks again
	default:
		r.replyError(in.ID, abi.ECANCELED, "run_cancelled", "the run is being cancelled")
	}
}

// cancelCalls ends whatever the guest waits for when a cancel arrives: requests
// in progress, its input, a sleep, and its emits, which wait for no reply that
// could tell it. A runtime that only sleeps again does so in its own time, or is
// stopped after the grace.
func (r *run) cancelCalls() {
	if r.abort != nil {
		r.abort()
	}
	if r.deps.Network != nil {
		r.deps.Network.Abort()
	}
	r.stdio.eof = true
	r.serveStdin()
	if s := r.sleeping; s != nil {
		s.timer.Stop()
		r.sleeping = nil
	}
	if g, ok := r.guest.(interface{ EndEmit(abi.Errno) error }); ok {
		if err := g.EndEmit(abi.ECANCELED); reachable(err) {
			r.latch(hostFault("end emits", err))
		}
	}
	if r.open != 0 && !r.beside {
		r.replyError(r.open, abi.ECANCELED, "run_cancelled", "the run is being cancelled")
	}
}

// A sleeper is a guest that sleeps.
type sleeper struct {
	id    uint32
	until time.Time
	timer *time.Timer
}

const maxSleep = 365 * 24 * time.Hour

// sleep lets the guest wait. While an assistance waits for the owner, the time
// is the owner's.
func (r *run) sleep(in sandbox.Inbound) {
	if len(in.Payload) != 8 {
		r.replyError(in.ID, abi.EINVAL, "invalid_request", "sleep wants a duration")
		return
	}
	d := time.Duration(min(binary.LittleEndian.Uint64(in.Payload), uint64(maxSleep)))
	left, bounded := r.clocks.ownerLeft(r.plan.Budgets)
	now := time.Now()
	r.clocks.begin(now, r.ownerInvolved() && (!bounded || left > 0))
	r.sleeping = &sleeper{in.ID, now.Add(d), time.NewTimer(d)}
}

// woken is the end of a sleep; nil when the guest does not sleep, or stands still.
func (r *run) woken() <-chan time.Time {
	if r.sleeping == nil || r.paused != nil {
		return nil
	}
	return r.sleeping.timer.C
}

func (r *run) wake() {
	id := r.sleeping.id
	r.sleeping = nil
	r.reply(id, nil)
}

// reply answers a call with success.
func (r *run) reply(id uint32, payload []byte) { r.send(id, abi.OK, payload) }

// replyError answers a call with an errno and its text.
func (r *run) replyError(id uint32, errno abi.Errno, code, message string) {
	b, err := marshal(map[string]string{"code": code, "message": message})
	if err != nil {
		b = nil
	}
	r.send(id, errno, b)
}

// send answers the call that is open; one that was answered meanwhile, by a
// cancel, is left alone.
func (r *run) send(id uint32, errno abi.Errno, payload []byte) {
	if r.latched != nil || id != r.open {
		return
	}
	if r.hold.on {
		r.hold.keep(id, errno, payload)
		return
	}
	r.open = 0
	r.rest(time.Now())
	r.clocks.touch()
	if err := r.guest.Reply(id, errno, payload); reachable(err) {
		r.latch(hostFault("answer the guest", err))
	}
}

// rest ends the span of a call. While a question is open the time is the
// owner's, on stdio too, where the guest goes on and waits at its input.
func (r *run) rest(now time.Time) {
	if r.asking != nil {
		r.clocks.begin(now, true)
		return
	}
	r.clocks.end(now)
}

func (r *run) credit(frames, bytes int) {
	if r.latched != nil {
		return
	}
	if r.hold.on {
		r.hold.frames, r.hold.bytes = r.hold.frames+frames, r.hold.bytes+bytes
		return
	}
	r.rest(time.Now())
	if err := r.guest.Credit(frames, bytes); reachable(err) {
		r.latch(hostFault("give credit", err))
	}
}
