package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// A cause is what ends a run. The first one latched decides.
type cause struct {
	reason      string
	status      string // "" is failed
	origin      string
	message     string
	code        string // failure_code
	deadline    string
	cancelCause string
	violation   *abi.Violation
	ingest      *ingestFailure
	timedOut    string // the assistance whose time passed
	fenced      bool   // the lease is lost: nothing is written any more
}

func (c *cause) statusOr() string {
	if c.status == "" {
		return abi.Failed
	}
	return c.status
}

// leaked reports whether a protected value ended the run.
func (c *cause) leaked() bool { return c.violation != nil && c.violation.Subtype == abi.VSecretLeak }

// latch keeps the first decisive cause and stops the guest at once. Later causes are ignored.
func (r *run) latch(c *cause) {
	if r.latched != nil || c.reason == "grant_revoked" && r.revoked() {
		return
	}
	r.latched = c
	r.collected()
	r.proto.End()
	if r.guest != nil {
		r.guest.Kill()
	}
}

// revoked takes the request that comes with a revocation: it ends a run as its
// owner's cancellation, also when the store refuses a flush first.
func (r *run) revoked() bool {
	select {
	case c := <-r.cancels:
		r.cancelRequested(c)
	default:
	}
	return r.cancel != nil
}

// violate latches a protocol violation.
func (r *run) violate(v *abi.Violation) {
	if r.latched != nil {
		return
	}
	for _, text := range []*string{&v.Stream, &v.Field, &v.Received, &v.Detail} { // the guest's words
		*text = r.canary.Text(*text)
	}
	v.Bound()
	r.flushProgress(time.Now(), true) // it came before the fault
	if r.latched != nil {
		return
	}
	v.LastValidEventID, v.LastValidEventType = string(r.journal.last.ID), r.journal.last.Type
	r.latch(&cause{reason: "connector_protocol_violation", origin: "runtime", message: v.Error(), violation: v})
}

// hostFault is any fault of the host itself; the text names what it was doing.
func hostFault(doing string, err error) *cause {
	return &cause{reason: "runtime_error", origin: "runtime", message: abi.Cut(fmt.Sprintf("%s: %v", doing, err), 500)}
}

// launchCause is R187. What is not ready in time fails in many ways, all of
// which are the budget's.
func (r *run) launchCause(err error, deadline error) *cause {
	c := &cause{reason: "launch_failed", origin: "runtime", code: "host_resources", message: abi.Cut(err.Error(), 500)}
	var l *LaunchError
	switch {
	case errors.Is(deadline, context.DeadlineExceeded):
		c.code, c.message = "prepare_timeout", fmt.Sprintf("The run was not ready within its prepare budget of %s.", r.plan.Budgets.Prepare)
	case errors.As(err, &l):
		c.code = l.Code
	}
	return c
}

// exitCause maps a worker's end to the reason of the run. nil
// means an orderly exit.
func (r *run) exitCause(e sandbox.Exit) *cause {
	switch e.Kind {
	case sandbox.ExitMemory:
		return &cause{reason: "memory_limit_exceeded", origin: "connector", message: "The guest's worker passed its memory limit."}
	case sandbox.ExitCPU:
		return &cause{reason: "run_timed_out", origin: "runtime", deadline: "compute", message: overText("compute", r.plan.Budgets)}
	case sandbox.ExitProtocol:
		return &cause{reason: "worker_protocol_error", origin: "runtime", message: "The worker broke its protocol: " + e.Detail}
	case sandbox.ExitViolation, sandbox.ExitCrashed, sandbox.ExitKilled:
		return &cause{reason: "worker_lost", origin: "runtime", code: lostCode(e.Kind), message: "The worker ended without a report: " + e.Detail}
	}
	return nil
}

func lostCode(k sandbox.ExitKind) string {
	if k == sandbox.ExitViolation {
		return "jail_violation"
	}
	return "worker_crashed"
}

// A cancelling run waits for its guest to leave.
type cancelling struct {
	request CancelRequest
	until   time.Time
	forced  bool
	event   *store.Event // run.cancel_requested of a run without a guest: it goes with the end
}

// cancelRequested is §19.3. Cancellation wins over any DONE until the terminal
// commit begins.
func (r *run) cancelRequested(c CancelRequest) {
	if r.cancel != nil || r.latched != nil {
		return
	}
	if c.Cause == CauseShutdown {
		r.latch(&cause{reason: reasonRestarted, origin: "runtime", message: "The host was stopped while the run was active."})
		return
	}
	r.control.change(func(l *Live) { l.CancelRequested = true })
	d := data{"cancel_cause": c.Cause, "trigger_kind": r.plan.Trigger}
	d.set("requested_by", c.By)
	d.set("reason", redact.Gap(c.Reason, 200))
	e := r.event("run.cancel_requested", "cancel_requested", d)
	if c.Cause == "owner" {
		e = by(c.By, e)
	}
	r.cancel = &cancelling{request: c, until: time.Now().Add(r.plan.Budgets.CancelGrace)}
	r.collected()
	if r.guest == nil {
		r.cancel.event = &e
		return
	}
	r.submit(&store.Commit{Events: []store.Event{e}}, nil)
	r.control.resumed()
	r.letRun() // a paused worker gets its grace too
	r.dropHeld()
	if r.asking != nil {
		r.closeQuestion(answerOf(r.asking, abi.AnswerCancelled, byHost))
	}
	r.proto.End()
	r.cancelCalls()
}

// byHost closes a question that nobody answered.
const byHost = "host"

// cancelCause is the cause of a cancelled run once its guest is gone.
func (c *cancelling) cause() *cause {
	reason := "owner_cancelled"
	if c.forced {
		reason = "owner_cancel_forced"
	}
	return &cause{reason: reason, status: abi.Cancelled, cancelCause: c.request.Cause}
}

// by is the principal that the end is due to; nil is the connector's own.
func (c *cancelling) by() string {
	if c == nil {
		return "connector"
	}
	if c.request.Cause == "owner" {
		return ownerOr(c.request.By)
	}
	return byHost
}
