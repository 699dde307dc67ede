package run

import (
	"cmp"
	"context"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/sandbox"
)

// calls is the conversation with the guest. At most one call awaits a reply.
type calls struct {
	*parts
	start         []byte             // START, until the guest asks for it
	open          uint32             // the call that awaits a reply; 0 for none
	async         bool               // it is handled outside of the loop
	abort         context.CancelFunc // cancels that; nil before the first
	finished      chan finishedCall
	stateAccepted bool // the call in progress was an accepted STATE
	stdio         stdio
	sleeping      *sleeper
	hold          hold
}

// call handles a call of the guest. Each case ends with a reply, a credit, or a latched cause.
func (cl *calls) call(in sandbox.Inbound) {
	if cl.outcome.over() {
		in.Release()
		return
	}
	if cl.pause.active() {
		cl.hold.calls = append(cl.hold.calls, in)
		return
	}
	cl.clocks.begin(time.Now(), cl.questions.open())
	if !in.Call.Pipelined() {
		cl.open = in.ID
	}
	if cl.outcome.cancelled() {
		cl.callCancelled(in)
		in.Release()
		return
	}
	if !cl.history.recordCall(in) {
		in.Release()
		return
	}
	cl.stateAccepted, cl.hold.active = false, cl.control.pausePending() && !cl.history.replaying()
	if !cl.dispatch(in) {
		in.Release()
	}
	cl.history.resolveOpen()
	if cl.hold.active && cl.outcome.ready() {
		cl.pause.drain()
	}
}

// dispatch handles a call by its type. It reports whether the payload is still needed.
func (cl *calls) dispatch(in sandbox.Inbound) (kept bool) {
	switch c := in.Call; c {
	case abi.CallStart:
		if v := cl.proto.Step(abi.StepStart); v != nil {
			cl.outcome.violate(v)
			break
		}
		cl.reply(in.ID, cl.start)
		cl.start = nil // the guest asks for it once
	case abi.CallEmit:
		cl.emit(in.Payload)
		cl.credit(1, len(in.Payload))
	case abi.CallMessage, abi.CallLog:
		cl.sideMessage(c, in)
	case abi.CallAttach, abi.CallAttachPart:
		if v := cl.proto.Step(abi.StepSide); v != nil {
			cl.outcome.violate(v)
			break
		}
		cl.handleAsync(in, in.Call, cl.files.attach(cl.canary.Watch(), cl.bindings.open()), nil)
		kept = true
	case abi.CallRead, abi.CallClose:
		kept = cl.sideCall(in)
	case abi.CallStdout:
		kept = cl.lines(in, in.Payload)
	case abi.CallStdin:
		cl.stdin(in)
	case abi.CallStdinEnd:
		cl.stdio.closed = true
		cl.reply(in.ID, nil)
	case abi.CallDiag:
		if len(in.Payload) > 1 {
			cl.output.handleDiagnostics(in.Payload[1:])
		}
		cl.reply(in.ID, nil)
	case abi.CallSleep:
		cl.sleep(in)
	case abi.CallFault:
		cl.fault(in.Payload)
	default:
		if c.Binding() != "" {
			return cl.sideCall(in)
		}
		if abi.MessageType(c) == "" { // a file call
			if cl.callBinding(in) {
				return true
			}
			cl.replyError(in.ID, abi.ENOTSUP, "unsupported", "this host does not know that call")
			break
		}
		m, v := cl.proto.Message(c, in.Payload)
		if v != nil {
			cl.outcome.violate(v)
			break
		}
		cl.handle(m, in.ID)
	}
	return kept
}

// handle acts on a valid message. call is 0 on stdio, where the reply belongs to the call that wrote the line.
func (cl *calls) handle(m abi.Message, call uint32) {
	cl.clocks.touch()
	switch m := m.(type) {
	case *abi.RecordMessage:
		cl.records.admit(m)
		return
	case *abi.StateMessage:
		if !cl.states.checkpoint(m) {
			return
		}
		cl.stateAccepted = true
	case *abi.ProgressMessage:
		cl.output.handleProgress(m)
	case *abi.SkipMessage:
		cl.gaps.skip(m)
	case *abi.GapMessage:
		cl.gaps.detailGap(m)
	case *abi.RecoveredMessage:
		if !cl.gaps.detailRecovered(m) {
			return
		}
	case *abi.CoverageMessage:
		cl.gaps.coverageDeclared(m)
	case *abi.InteractionMessage:
		cl.questions.interact(m, call)
		return // closeQuestion replies
	case *abi.AssistanceMessage:
		cl.assistances.assist(m)
		if call != 0 {
			cl.reply(call, []byte(`{"assistance_request_id":`+string(strictjson.AppendQuote(nil, m.ID))+`}`))
		}
		return
	case *abi.AssistanceStatusMessage:
		cl.assistances.assistStatus(m)
	case *abi.TextMessage:
		cl.output.message(m.Chunk, m.Last, m.Meta)
	case *abi.RequestMessage, *abi.ReadMessage:
		cl.stdio.exchange.line = m // handled once the line is finished
	case *abi.DoneMessage:
		if cl.hold.active { // a drain point, handled after the pause
			cl.hold.done, cl.hold.doneCall = m, call
			return
		}
		if !cl.doneReceived(m) {
			return
		}
	}
	if call != 0 {
		cl.reply(call, nil)
	}
}

// emit admits the records of a frame one by one. Those before an invalid one are kept.
func (cl *calls) emit(frame []byte) {
	fr, v := cl.proto.Frame(frame)
	if v != nil {
		cl.outcome.violate(v)
		return
	}
	var rec abi.FrameRecord
	now := time.Now().UnixMicro() // one time for the whole frame
	for fr.Next(&rec) {
		m, v := cl.proto.Record(&rec)
		if v != nil {
			cl.outcome.violate(v)
			return
		}
		m.EmittedAt = cmp.Or(m.EmittedAt, now)
		if cl.records.admit(m); !cl.outcome.ready() {
			return
		}
	}
	if err := fr.Err(); err != nil {
		cl.outcome.violate(cl.proto.FrameFault(err))
	}
	cl.clocks.touch()
}

// doneReceived handles the receipt of DONE, which proposes an end but does not decide it.
func (cl *calls) doneReceived(m *abi.DoneMessage) bool {
	cl.outcome.propose(m)
	if m.Status == abi.Succeeded {
		cl.records.flushAll()
	}
	if !cl.loop.barrier() {
		return false
	}
	cl.control.phase("finishing")
	cl.stdio.eof = true
	cl.serveStdin()
	cl.outcome.acknowledged(time.Now())
	return true
}

// sideMessage handles message and log, which are allowed in any phase before DONE and never change state.
func (cl *calls) sideMessage(c abi.Call, in sandbox.Inbound) {
	typ := "MESSAGE"
	if c == abi.CallLog {
		typ = "LOG"
	}
	v, bad := cl.proto.Side(typ, in.Payload)
	if bad != nil {
		cl.outcome.violate(bad)
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
		if !okLevel || !okText || len(text) > cl.plan.Limits.TextBytes {
			cl.replyError(in.ID, abi.EINVAL, "invalid_request",
				"log wants a level (debug, info, warn, error) and a message of at most 8 KiB")
			return
		}
		cl.output.handleLog(name, text, fields)
		cl.reply(in.ID, nil)
		return
	}
	chunk, _ := v.Member("chunk")
	text, ok := chunk.Text()
	last, _ := v.Member("is_last")
	isLast, isBool := last.Bool()
	if !ok || !isBool && !last.Absent() {
		cl.replyError(in.ID, abi.EINVAL, "invalid_request", "message wants a chunk text and is_last true or false")
		return
	}
	meta, _ := v.Member("meta")
	cl.output.message(text, isLast, meta)
	cl.reply(in.ID, nil)
}

// sideCall handles calls of bindings and of handles, which are not messages.
func (cl *calls) sideCall(in sandbox.Inbound) (kept bool) {
	if v := cl.proto.Step(abi.StepSide); v != nil {
		cl.outcome.violate(v)
		return false
	}
	if cl.callBinding(in) {
		return true
	}
	if k, known := cl.plan.Kinds.Of(in.Call.Binding()); known {
		code, message := k.Denial()
		cl.deny(in.ID, code, message)
	} else {
		cl.replyError(in.ID, abi.ENOENT, "unknown_handle", "there is no such handle")
	}
	return false
}

// callBinding passes a call to the binding that handles it, and reports whether there is one.
func (cl *calls) callBinding(in sandbox.Inbound) bool {
	b := cl.bindings.bindingFor(in.Call, in.Payload)
	if b != nil {
		cl.handleAsync(in, in.Call, cl.bindings.serve(b),
			func() ([]byte, abi.Errno) { return lostReply(b, in.Call, in.Payload) })
	}
	return b != nil
}

// lostReply returns the reply to a request that was sent before the run was resumed and whose response is lost.
func lostReply(b binding.Binding, call abi.Call, payload []byte) ([]byte, abi.Errno) {
	if h, ok := b.(binding.StateSaver); ok {
		return h.LostReply(call, payload)
	}
	return errorText("reply_lost", "the host ended before the answer was kept"), abi.EUNAVAIL
}

// handleAsync handles a call outside of the loop, since it may wait for a disk or a server. The payload is released
// when the call has finished. In a resumed run, lost replaces handle if the request may have been sent before.
func (cl *calls) handleAsync(in sandbox.Inbound, call abi.Call, handle handler, lost func() ([]byte, abi.Errno)) {
	sent := false
	if cl.history.replaying() {
		var played bool
		if sent, played = cl.replayResult(in); played {
			return
		}
		if sent {
			handle = func(context.Context, abi.Call, []byte) ([]byte, abi.Errno) { return lost() }
		}
	}
	if !sent && sendsRequest(call, in.Payload) && !cl.history.recordIntent() {
		in.Release()
		return
	}
	ctx, cancel := context.WithCancel(cl.ctx)
	cl.abort, cl.async = cancel, true
	span := cl.journal.tracedActivity(in.Call)
	go func() {
		reply, errno := handle(ctx, in.Call, in.Payload)
		span.errno(errno)
		select {
		case cl.finished <- finishedCall{in: in, reply: reply, errno: errno}:
		case <-cl.ctx.Done():
		}
	}()
}

// sendsRequest reports whether a call sends a request to a server.
func sendsRequest(call abi.Call, payload []byte) bool {
	if call == abi.CallNetworkExchange {
		_, asked, err := abi.ParseExchange(payload)
		return err == nil && len(asked) > 0
	}
	return call == abi.CallNetworkRequest
}

// replayResult replies to a call from the journal. played is false if the run has reached the end of its journal;
// sent then reports whether the request may have been sent before.
func (cl *calls) replayResult(in sandbox.Inbound) (sent, played bool) {
	errno, reply, sent, ok := cl.history.replayResult()
	if !ok && cl.history.live() && cl.outcome.ready() {
		return sent, false
	}
	if !ok {
		in.Release()
		return sent, true
	}
	cl.abort, cl.async = func() {}, true
	cl.finished <- finishedCall{in: in, reply: reply, errno: errno, played: true}
	return sent, true
}

// deny denies a call, with an error for the guest and a log line for the owner.
func (cl *calls) deny(id uint32, code, message string) {
	cl.output.handleLog("warn", "denied: "+message, strictjson.Value{})
	cl.replyError(id, abi.EDENIED, code, message)
}

// fault handles a request that the worker refused before copying it.
func (cl *calls) fault(payload []byte) {
	f, err := abi.ParseRequestFault(payload)
	if err != nil {
		cl.outcome.latch(&cause{reason: "worker_protocol_error", origin: "runtime",
			message: "The worker reported a malformed fault."})
		return
	}
	if f.Kind == abi.FaultTooBig {
		cl.outcome.violate(cl.proto.Fault(abi.VFrameTooLarge, abi.MessageType(f.Call),
			"limit "+itoa(cl.plan.Limits.FrameBytes)))
		return
	}
	cl.outcome.violate(&abi.Violation{Subtype: abi.VAbiFault, MessageType: abi.MessageType(f.Call),
		Detail: "a pointer outside of memory"})
}

// A finishedCall is a call that was handled outside of the loop or, if rateWait is set, a wait of the call in
// progress.
type finishedCall struct {
	in       sandbox.Inbound
	reply    []byte
	errno    abi.Errno
	rateWait *rateWait
	played   bool // the result is from the journal
}

// checkRecording ends a run whose recording or replay failed.
func (cl *calls) checkRecording(gone bool) {
	if cl.outcome.cancelled() {
		return
	}
	if code, message := cl.bindings.fault(gone); code != "" {
		cl.outcome.latch(&cause{reason: code, origin: "connector", message: cl.canary.Text(message)})
	}
}

func (cl *calls) finishCall(f finishedCall) {
	if f.rateWait != nil {
		cl.assistances.beginRateWait(f.rateWait)
		return
	}
	cl.assistances.beginRateWait(&rateWait{})
	if !f.played {
		cl.history.recordResult(f.errno, f.reply)
	}
	f.in.Release()
	cl.abort()
	cl.async = false
	cl.bindings.callDone()
	cl.bindings.handleReports() // reports of a binding during a call come before its reply
	if f.in.Call.Binding() != "" || f.in.Call == abi.CallAttach {
		cl.checkRecording(false)
		cl.secrets.learn()
		cl.secrets.sealedUses()
		switch {
		case f.errno == abi.EDENIED:
			cl.output.logDenial(f.reply)
		case f.errno == abi.OK && f.in.Call == abi.CallNetworkExchange:
			cl.output.logDenials(f.reply)
		}
	}
	if cl.stdio.exchange.id != "" {
		cl.lineAnswered(f)
		return
	}
	r := callReply{id: f.in.ID, errno: f.errno, payload: f.reply, result: true}
	if cl.outcome.cancelled() {
		r = callReply{id: f.in.ID, errno: abi.ECANCELED}
	}
	cl.send(r)
	cl.history.suspendIfLeaving(time.Now(), true)
}

// callCancelled answers a call after a cancel request. Every call fails, and what the guest sends is not read.
func (cl *calls) callCancelled(in sandbox.Inbound) {
	switch in.Call {
	case abi.CallEmit:
		cl.credit(1, len(in.Payload))
	case abi.CallDiag:
		if len(in.Payload) > 1 {
			cl.output.handleDiagnostics(in.Payload[1:])
		}
		cl.reply(in.ID, nil)
	case abi.CallStdin:
		cl.stdin(in)
	case abi.CallSleep:
		cl.sleep(in) // in full, since a runtime that wakes early only sleeps again
	default:
		cl.replyError(in.ID, abi.ECANCELED, "run_cancelled", "the run is being cancelled")
	}
}
