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
	r.lastLine()
	r.leftWaiting()
	r.endText()
	if r.guest != nil {
		r.endLog()
	}
	if r.deps.Network != nil {
		r.sealedUses()
	}
	r.flushProgress(time.Now(), true) // the last message is never lost
	r.settled()
	r.keepEmitted()
	if r.latched == nil && r.cancel == nil && r.done != nil && r.exit != nil && r.exitCause(*r.exit) == nil {
		r.checkExit()
	}
	if r.latched == nil && r.exit != nil && r.exitCause(*r.exit) == nil && r.done != nil && r.done.Status == abi.Succeeded {
		r.taped(true)
	}
	r.closeBrowser()
	r.stop()
	end := r.outcome()
	r.breach(end.cause)
	r.control.phase("committing")
	result := r.terminate(end)
	r.node.end(result.err())
	r.control.over(statusOf(result))
	if r.files != nil {
		if err := r.files.Close(); err != nil {
			slog.Error("remove scratch directory", "run", r.id, "error", err)
		}
	}
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
func (r *run) leftWaiting() {
	if r.asking == nil || r.latched != nil && (r.latched.violation != nil || r.latched.reason == badChannel) {
		return
	}
	q := r.asking
	if q.cancel != nil {
		q.cancel()
	}
	if r.stdio.closed {
		r.stdio.feed([]byte{'\n'}, "interaction_response") // never to be read
	}
	r.gaps.add(r.interactionGap(q, abi.AnswerCancelled))
	events := r.answerEvents(q, answerOf(q, abi.AnswerCancelled, byHost))
	r.asking = nil
	q.span.end(nil)
	r.browserAnswered(q)
	r.submit(&store.Commit{Answered: q.id, Events: events}, nil)
	q.host.answer(hostAnswer{id: q.id, status: abi.AnswerCancelled})
}

// endText closes a message the connector left open.
func (r *run) endText() {
	if r.text.open && r.guest != nil {
		r.message("", true, abi.Value{})
	}
}

// checkExit is checks 8 to 10 of DONE.
func (r *run) checkExit() {
	clean := r.exit.Kind == sandbox.ExitExited && r.exit.Code == 0
	if clean != (r.done.Status == abi.Succeeded) {
		got := "a trap"
		if r.exit.Kind == sandbox.ExitExited {
			got = strconv.Itoa(int(r.exit.Code))
		}
		want := "0"
		if r.done.Status != abi.Succeeded {
			want = "a code other than 0"
		}
		r.violate(&abi.Violation{Subtype: abi.VExitCodeMismatch, MessageType: "DONE", Expected: []string{want}, Received: got})
		return
	}
	switch n := r.done.RecordsEmitted; {
	case n == nil:
		r.violate(&abi.Violation{Subtype: abi.VDoneInvalidRecordsEmitted, MessageType: "DONE", Field: "records_emitted"})
	case *n != r.proto.Records():
		r.violate(&abi.Violation{Subtype: abi.VDoneRecordsEmittedMismatch, MessageType: "DONE", Field: "records_emitted",
			Expected: []string{strconv.FormatInt(r.proto.Records(), 10)}, Received: r.done.ReportedRecords})
	}
}

// An ending is how a run ends before anything is committed.
type ending struct {
	status string
	cause  *cause // nil when it succeeded
	event  string
	commit bool // staged cursors may commit
}

// outcome decides how the run ends.
func (r *run) outcome() ending {
	switch {
	case r.cancel != nil: // nothing latches a cause before it asks for one
		return ending{status: abi.Cancelled, cause: r.cancel.cause(), event: "run.cancelled"}
	case r.latched != nil:
		return ending{status: r.latched.statusOr(), cause: r.latched, event: "run.failed"}
	case r.exitCause(*r.exit) != nil:
		return ending{status: abi.Failed, cause: r.exitCause(*r.exit), event: "run.failed"}
	case r.done == nil:
		return ending{status: abi.Failed, cause: r.leftWithoutDone(), event: "run.failed"}
	case r.done.Status == abi.Failed:
		return ending{status: abi.Failed, event: "run.failed", commit: r.certified(),
			cause: &cause{reason: "connector_reported_failed", message: "The connector reported that it failed."}}
	case r.done.Status == abi.Cancelled:
		return ending{status: abi.Cancelled, event: "run.cancelled", cause: &cause{reason: "connector_reported_cancelled",
			status: abi.Cancelled, cancelCause: CauseGuest, message: "The connector reported that it was cancelled."}}
	}
	return ending{status: abi.Succeeded, event: "run.completed", commit: true}
}

// leftWithoutDone is the reason of a guest that ended on its own.
func (r *run) leftWithoutDone() *cause {
	if r.exit.Kind == sandbox.ExitTrapped {
		return &cause{reason: "connector_trapped", origin: "connector", message: "The connector crashed (" + r.exit.TrapKind + ") before it sent DONE."}
	}
	code := strconv.Itoa(int(r.exit.Code))
	if r.stdio.undelivered() != "" {
		return &cause{reason: "connector_stdin_closed", origin: "connector",
			message: "The connector closed its input before it read everything, and ended with exit code " + code + " without DONE."}
	}
	return &cause{reason: "connector_exit_without_done", origin: "connector",
		message: "The connector ended with exit code " + code + " before it sent DONE."}
}

// memoryWall is what the worker's memory was bounded by.
func (r *run) memoryWall() int64 {
	if g, ok := r.guest.(interface{ MemoryWall() uint64 }); ok {
		return int64(g.MemoryWall())
	}
	return int64(r.exit.Usage.PeakMemoryBytes)
}

// breach records that a limit with an openwop name was hit.
func (r *run) breach(c *cause) {
	if c == nil || r.exit == nil {
		return
	}
	var d data
	switch {
	case c.reason == "memory_limit_exceeded":
		d = data{"kind": "wasm-memory", "limit": r.memoryWall(), "observed": int64(r.exit.Usage.PeakMemoryBytes)}
	case c.deadline == "compute":
		d = data{"kind": "wasm-execution-time", "limit": r.plan.Budgets.Compute.Milliseconds(), "observed": r.clocks.compute.Milliseconds()}
	default:
		return
	}
	latched := r.latched
	r.submit(&store.Commit{Events: []store.Event{r.nodeEvent("cap.breached", "failed", d)}}, nil)
	r.settled()
	r.latched = latched
}
