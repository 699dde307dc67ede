package run

import (
	"time"

	"github.com/sluicehost/sluice/abi"
)

// finish ends a run whose guest is gone, or never was.
func (r *run) finish() *Result {
	r.clocks.end(time.Now())
	r.bindings.abort() // what the guest did not wait for
	r.calls.lastLine()
	r.questions.leftWaiting()
	r.output.endText()
	if r.guest != nil {
		r.output.endLog()
	}
	r.secrets.sealedUses()
	r.output.flushProgress(time.Now(), true) // the last message is never lost
	r.settled()
	r.records.keepEmitted()
	if r.outcome.ready() && r.outcome.orderly() {
		r.outcome.checkExit()
	}
	if !r.outcome.over() && r.outcome.orderly() && r.outcome.proposal().Status == abi.Succeeded {
		r.calls.taped(true)
	}
	r.bindings.closeSpeakers()
	r.stop()
	end := r.outcome.decide()
	r.terminal.breach(end.cause)
	r.control.phase("committing")
	result := r.terminal.terminate(end)
	r.journal.endNode(result.err())
	r.control.over(statusOf(result))
	r.bindings.close()
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
