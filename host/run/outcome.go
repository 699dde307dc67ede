package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// A cause is what ends a run. The first one that is latched decides.
type cause struct {
	reason      string
	status      string // "" means failed
	origin      string
	message     string
	code        string // failure_code
	deadline    string
	cancelCause string
	violation   *abi.Violation
	ingest      *ingestFailure
	timedOut    string // id of the assistance whose time is over
	fenced      bool   // the lease is lost, and nothing more is written
}

func (c *cause) statusOr() string {
	return cmp.Or(c.status, abi.Failed)
}

// leaked reports whether a leak of a protected value ended the run.
func (c *cause) leaked() bool { return c.violation != nil && c.violation.Subtype == abi.VSecretLeak }

// outcome is how a run ends, as far as that is decided.
type outcome struct {
	*parts
	latched *cause
	cancel  *cancelling
	done    *abi.DoneMessage
	doneAt  time.Time // when the guest got the reply to DONE
	exit    *sandbox.Exit
}

// ready reports whether nothing has ended the run yet.
func (o *outcome) ready() bool { return o.latched == nil && o.cancel == nil }

// over reports whether a cause is latched.
func (o *outcome) over() bool { return o.latched != nil }

// cause returns the latched cause, nil for none.
func (o *outcome) cause() *cause { return o.latched }

// cancelled reports whether the run is being cancelled.
func (o *outcome) cancelled() bool { return o.cancel != nil }

// cancelBy begins the cancellation and the grace period of the guest.
func (o *outcome) cancelBy(c CancelRequest) *cancelling {
	o.cancel = &cancelling{request: c, until: time.Now().Add(o.plan.Budgets.CancelGrace)}
	return o.cancel
}

// proposal returns the DONE that was accepted, nil for none.
func (o *outcome) proposal() *abi.DoneMessage { return o.done }

func (o *outcome) propose(m *abi.DoneMessage) { o.done = m }

// acknowledged sets when the guest got the reply to DONE, after which it should exit.
func (o *outcome) acknowledged(at time.Time) { o.doneAt = at }

// exceedsExitGrace reports whether the guest has exceeded the time to exit after DONE.
func (o *outcome) exceedsExitGrace(now time.Time) bool {
	return o.done != nil && !o.doneAt.IsZero() && now.Sub(o.doneAt) > o.plan.Budgets.ExitGrace
}

// setExit records the exit of the worker.
func (o *outcome) setExit(e sandbox.Exit) { o.exit = &e }

// workerExit returns the exit of the worker, nil while it is running.
func (o *outcome) workerExit() *sandbox.Exit { return o.exit }

// exitedCleanly reports whether the guest sent DONE and exited without a fault of its worker.
func (o *outcome) exitedCleanly() bool {
	return o.done != nil && o.exit != nil && o.exitCause(*o.exit) == nil
}

// unanswered reports whether a question stays open in the terminal event: after a violation, or an invalid
// answer of the owner's channel.
func (o *outcome) unanswered() bool {
	return o.latched != nil && (o.latched.violation != nil || o.latched.reason == badChannel)
}

// mustDropRecords reports whether records that are not stored yet must not be stored any more.
func (o *outcome) mustDropRecords() bool {
	c := o.latched
	return c != nil && (c.origin == "storage" || c.fenced || c.leaked())
}

// saveCause returns a function that restores the cause that is latched now.
func (o *outcome) saveCause() (restore func()) {
	saved := o.latched
	return func() { o.latched = saved }
}

// unrecordedCancel returns the event of the cancel request if it was not recorded before, for the last commit.
func (o *outcome) unrecordedCancel() []store.Event {
	if o.cancel == nil || o.cancel.event == nil {
		return nil
	}
	return []store.Event{*o.cancel.event}
}

// endedBy returns the principal that ended the run.
func (o *outcome) endedBy() string { return o.cancel.by() }

// latch keeps the first decisive cause and kills the guest at once. Later causes are ignored.
func (o *outcome) latch(c *cause) {
	if o.latched != nil || c.reason == "grant_revoked" && o.loop.revoked() {
		return
	}
	o.latched = c
	o.commits.stopRecords()
	o.proto.End()
	if o.guest != nil {
		o.guest.Kill()
	}
}

// violate latches a protocol violation.
func (o *outcome) violate(v *abi.Violation) {
	if o.latched != nil {
		return
	}
	for _, text := range []*string{&v.Stream, &v.Field, &v.Received, &v.Detail} { // texts of the guest
		*text = o.canary.Text(*text)
	}
	v.Bound()
	o.output.flushProgress(time.Now(), true) // it was sent before the violation
	if o.latched != nil {
		return
	}
	last := o.journal.latest()
	v.LastValidEventID, v.LastValidEventType = string(last.ID), last.Type
	o.latch(&cause{reason: "connector_protocol_violation", origin: "runtime", message: v.Error(), violation: v})
}

// hostFault returns the cause for an error of the host itself. The text names what it was doing.
func hostFault(doing string, err error) *cause {
	return &cause{reason: "runtime_error", origin: "runtime", message: abi.Cut(fmt.Sprintf("%s: %v", doing, err), 500)}
}

// launchCause returns why a guest could not be launched. When the prepare budget is used up, launches fail with
// various errors, all of which are reported as prepare_timeout.
func (o *outcome) launchCause(err error, deadline error) *cause {
	c := &cause{reason: "launch_failed", origin: "runtime", code: "host_resources", message: abi.Cut(err.Error(), 500)}
	var l *LaunchError
	switch {
	case errors.Is(deadline, context.DeadlineExceeded):
		c.code, c.message = "prepare_timeout",
			fmt.Sprintf("The run was not ready within its prepare budget of %s.", o.plan.Budgets.Prepare)
	case errors.As(err, &l):
		c.code = l.Code
	}
	return c
}

// exitCause returns the cause of a worker's exit, nil for an orderly one.
func (o *outcome) exitCause(e sandbox.Exit) *cause {
	switch e.Kind {
	case sandbox.ExitMemory:
		return &cause{reason: "memory_limit_exceeded", origin: "connector",
			message: "The guest's worker passed its memory limit."}
	case sandbox.ExitCPU:
		return timedOut("compute", o.plan.Budgets.Compute)
	case sandbox.ExitProtocol:
		return &cause{reason: "worker_protocol_error", origin: "runtime",
			message: "The worker broke its protocol: " + e.Detail}
	case sandbox.ExitViolation, sandbox.ExitCrashed, sandbox.ExitKilled:
		return &cause{reason: "worker_lost", origin: "runtime", code: lostCode(e.Kind),
			message: "The worker ended without a report: " + e.Detail}
	}
	return nil
}

func lostCode(k sandbox.ExitKind) string {
	if k == sandbox.ExitViolation {
		return "jail_violation"
	}
	return "worker_crashed"
}

// A cancelling is a cancellation during which the guest may still exit by itself.
type cancelling struct {
	request CancelRequest
	until   time.Time
	forced  bool
	event   *store.Event // run.cancel_requested, written with the end of a run without a guest
}

// byHost is the principal of questions that the host closed.
const byHost = "host"

// cause returns the cause of a cancelled run once its guest is gone.
func (c *cancelling) cause() *cause {
	reason := "owner_cancelled"
	if c.forced {
		reason = "owner_cancel_forced"
	}
	return &cause{reason: reason, status: abi.Cancelled, cancelCause: c.request.Cause}
}

// by returns the principal that ended the run. With a nil c, the connector did.
func (c *cancelling) by() string {
	if c == nil {
		return "connector"
	}
	if c.request.Cause == "owner" {
		return ownerOr(c.request.By)
	}
	return byHost
}

// checkExit makes checks 8 to 10 of DONE.
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
		o.violate(&abi.Violation{Subtype: abi.VExitCodeMismatch, MessageType: "DONE",
			Expected: []string{want}, Received: got})
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

// An ending is how a run ends, before anything is committed.
type ending struct {
	status string
	cause  *cause // nil for a success
	event  string
	commit bool // staged cursors may be committed
}

// decide determines how the run ends.
func (o *outcome) decide() ending {
	switch {
	case o.cancel != nil: // later causes do not override a cancellation
		return ending{status: abi.Cancelled, cause: o.cancel.cause(), event: "run.cancelled"}
	case o.latched != nil:
		return ending{status: o.latched.statusOr(), cause: o.latched, event: "run.failed"}
	case o.exitCause(*o.exit) != nil:
		return ending{status: abi.Failed, cause: o.exitCause(*o.exit), event: "run.failed"}
	case o.done == nil:
		return ending{status: abi.Failed, cause: o.exitedWithoutDone(), event: "run.failed"}
	case o.done.Status == abi.Failed:
		return ending{status: abi.Failed, event: "run.failed", commit: o.certified(),
			cause: &cause{reason: "connector_reported_failed", message: "The connector reported that it failed."}}
	case o.done.Status == abi.Cancelled:
		return ending{status: abi.Cancelled, event: "run.cancelled", cause: &cause{reason: "connector_reported_cancelled",
			status: abi.Cancelled, cancelCause: CauseGuest, message: "The connector reported that it was cancelled."}}
	}
	return ending{status: abi.Succeeded, event: "run.completed", commit: true}
}

// exitedWithoutDone returns the cause for a guest that exited by itself.
func (o *outcome) exitedWithoutDone() *cause {
	if o.exit.Kind == sandbox.ExitTrapped {
		return &cause{reason: "connector_trapped", origin: "connector", message: "The connector crashed (" + o.exit.TrapKind +
			") before it sent DONE."}
	}
	code := strconv.Itoa(int(o.exit.Code))
	if o.calls.undelivered() != "" {
		return &cause{reason: "connector_stdin_closed", origin: "connector",
			message: "The connector closed its input before it read everything, and ended with exit code " +
				code + " without DONE."}
	}
	return &cause{reason: "connector_exit_without_done", origin: "connector",
		message: "The connector ended with exit code " + code + " before it sent DONE."}
}

// withinCancelGrace reports whether the run is being cancelled, in which case nothing else decides its end. It kills a
// guest that has not exited within the grace period.
func (o *outcome) withinCancelGrace(now time.Time) bool {
	c := o.cancel
	if c != nil && now.After(c.until) && !c.forced && o.guest != nil {
		c.forced = true
		o.guest.Kill()
	}
	return c != nil
}

// latchStore is latch for an error of the store. It does nothing during a cancellation.
func (o *outcome) latchStore(c *cause) {
	if o.cancel == nil {
		o.latch(c)
	}
}

// certified reports whether the connector reported failure and which streams failed.
func (o *outcome) certified() bool {
	return o.done != nil && o.done.Status == abi.Failed && o.done.Error != nil &&
		o.done.Error.Code == abi.CodeStreamFailed && o.gaps.streamFailed()
}

// leak ends the run because of a protected value in a cursor, progress message or gap.
func (o *outcome) leak(typ, stream, at string, raw []byte) {
	o.violate(o.leaked(typ, stream, at, raw))
}

// leaked returns the violation for a protected value in a message. It has the place and not the value.
func (o *outcome) leaked(typ, stream, at string, raw []byte) *abi.Violation {
	if v, err := strictjson.Parse(raw, strictjson.ParseOptions{AnyKind: true}); err == nil {
		at += o.canary.Locate(v)
	}
	return &abi.Violation{Subtype: abi.VSecretLeak, MessageType: typ, Stream: stream, Field: at}
}
