package run

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// finish ends a run whose guest is gone, or never was.
func (r *run) finish() *Result {
	r.clocks.end(time.Now())
	if r.deps.Network != nil {
		r.deps.Network.Abort() // what the guest did not wait for
	}
	r.calls.lastLine()
	r.questions.leftWaiting()
	r.output.endText()
	if r.guest != nil {
		r.output.endLog()
	}
	if r.deps.Network != nil {
		r.secrets.sealedUses()
	}
	r.output.flushProgress(time.Now(), true) // the last message is never lost
	r.settled()
	r.records.keepEmitted()
	if r.outcome.ready() && r.outcome.orderly() {
		r.outcome.checkExit()
	}
	if !r.outcome.over() && r.outcome.orderly() && r.outcome.proposal().Status == abi.Succeeded {
		r.calls.taped(true)
	}
	r.browser.closeBrowser()
	r.stop()
	end := r.outcome.decide()
	r.terminal.breach(end.cause)
	r.control.phase("committing")
	result := r.terminal.terminate(end)
	r.journal.endNode(result.err())
	r.control.over(statusOf(result))
	r.calls.closeFiles()
	if r.deps.Network != nil {
		if err := r.deps.Network.Close(); err != nil {
			slog.Error("close network", "run", r.id, "error", err)
		}
	}
	return result
}

// statusOf is how the API calls the end of a run.
func statusOf(r *Result) string {
	switch {
	case r.Status == abi.Succeeded:
		return "completed"
	case r.CancelCause != "":
		return "cancelled"
	}
	return "failed"
}

// leftWaiting closes a question whose guest is gone. A violation while waiting,
// or an owner's channel that talks nonsense, leaves it open: the terminal event
// names it.
func (qs *questions) leftWaiting() {
	if qs.asking == nil || qs.outcome.unanswered() {
		return
	}
	q := qs.asking
	if q.cancel != nil {
		q.cancel()
	}
	qs.calls.unread("interaction_response")
	qs.gaps.add(qs.interactionGap(q, abi.AnswerCancelled))
	events := qs.answerEvents(q, answerOf(q, abi.AnswerCancelled, byHost))
	qs.asking = nil
	q.span.end(nil)
	qs.browser.browserAnswered(q)
	qs.commits.submit(&store.Commit{Answered: q.id, Events: events}, nil)
	q.host.answer(hostAnswer{id: q.id, status: abi.AnswerCancelled})
}

// endText closes a message the connector left open.
func (op *output) endText() {
	if op.text.open && op.guest != nil {
		op.message("", true, abi.Value{})
	}
}

// checkExit is checks 8 to 10 of DONE.
func (o *outcome) checkExit() {
	clean := o.exit.Kind == sandbox.ExitExited && o.exit.Code == 0
	if clean != (o.done.Status == abi.Succeeded) {
		got := "a trap"
		if o.exit.Kind == sandbox.ExitExited {
			got = strconv.Itoa(int(o.exit.Code))
		}
		want := "0"
		if o.done.Status != abi.Succeeded {
			want = "a code other than 0"
		}
		o.violate(&abi.Violation{Subtype: abi.VExitCodeMismatch, MessageType: "DONE", Expected: []string{want}, Received: got})
		return
	}
	switch n := o.done.RecordsEmitted; {
	case n == nil:
		o.violate(&abi.Violation{Subtype: abi.VDoneInvalidRecordsEmitted, MessageType: "DONE", Field: "records_emitted"})
	case *n != o.proto.Records():
		o.violate(&abi.Violation{Subtype: abi.VDoneRecordsEmittedMismatch, MessageType: "DONE", Field: "records_emitted",
			Expected: []string{strconv.FormatInt(o.proto.Records(), 10)}, Received: o.done.ReportedRecords})
	}
}

// An ending is how a run ends before anything is committed.
type ending struct {
	status string
	cause  *cause // nil when it succeeded
	event  string
	commit bool // staged cursors may commit
}

// decide says how the run ends.
func (o *outcome) decide() ending {
	switch {
	case o.cancel != nil: // nothing latches a cause before it asks for one
		return ending{status: abi.Cancelled, cause: o.cancel.cause(), event: "run.cancelled"}
	case o.latched != nil:
		return ending{status: o.latched.statusOr(), cause: o.latched, event: "run.failed"}
	case o.exitCause(*o.exit) != nil:
		return ending{status: abi.Failed, cause: o.exitCause(*o.exit), event: "run.failed"}
	case o.done == nil:
		return ending{status: abi.Failed, cause: o.leftWithoutDone(), event: "run.failed"}
	case o.done.Status == abi.Failed:
		return ending{status: abi.Failed, event: "run.failed", commit: o.certified(),
			cause: &cause{reason: "connector_reported_failed", message: "The connector reported that it failed."}}
	case o.done.Status == abi.Cancelled:
		return ending{status: abi.Cancelled, event: "run.cancelled", cause: &cause{reason: "connector_reported_cancelled",
			status: abi.Cancelled, cancelCause: CauseGuest, message: "The connector reported that it was cancelled."}}
	}
	return ending{status: abi.Succeeded, event: "run.completed", commit: true}
}

// leftWithoutDone is the reason of a guest that ended on its own.
func (o *outcome) leftWithoutDone() *cause {
	if o.exit.Kind == sandbox.ExitTrapped {
		return &cause{reason: "connector_trapped", origin: "connector", message: "The connector crashed (" + o.exit.TrapKind + ") before it sent DONE."}
	}
	code := strconv.Itoa(int(o.exit.Code))
	if o.calls.undelivered() != "" {
		return &cause{reason: "connector_stdin_closed", origin: "connector",
			message: "The connector closed its input before it read everything, and ended with exit code " + code + " without DONE."}
	}
	return &cause{reason: "connector_exit_without_done", origin: "connector",
		message: "The connector ended with exit code " + code + " before it sent DONE."}
}

// memoryWall is what the worker's memory was bounded by.
func (te *terminal) memoryWall() int64 {
	if g, ok := te.guest.(interface{ MemoryWall() uint64 }); ok {
		return int64(g.MemoryWall())
	}
	return int64(te.outcome.left().Usage.PeakMemoryBytes)
}

// breach records that a limit with an openwop name was hit.
func (te *terminal) breach(c *cause) {
	if c == nil || te.outcome.left() == nil {
		return
	}
	var d data
	switch {
	case c.reason == "memory_limit_exceeded":
		d = data{"kind": "wasm-memory", "limit": te.memoryWall(), "observed": int64(te.outcome.left().Usage.PeakMemoryBytes)}
	case c.deadline == "compute":
		d = data{"kind": "wasm-execution-time", "limit": te.plan.Budgets.Compute.Milliseconds(), "observed": te.clocks.compute.Milliseconds()}
	default:
		return
	}
	defer te.outcome.unchanged()()
	te.commits.submit(&store.Commit{Events: []store.Event{te.journal.nodeEvent("cap.breached", "failed", d)}}, nil)
	te.loop.settled()
}
