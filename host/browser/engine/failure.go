package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Classes of failures.
const (
	TargetResolutionFailure   = "TargetResolutionFailure"
	ExecutionFailure          = "ExecutionFailure"
	VerificationFailure       = "VerificationFailure"
	ControlConvergenceFailure = "ControlConvergenceFailure"
	SemanticMismatchFailure   = "SemanticMismatchFailure"
)

// Reasons of failures.
const (
	ReasonTarget    = "target_resolution_failure"
	ReasonDispatch  = "dispatch_failure"
	ReasonTimeout   = "verification_timeout"
	ReasonChanged   = "unexpected_state_delta"
	ReasonUnchanged = "no_state_change"
)

// A Stage is how far an action got before it failed.
type Stage int

// The stages that the failure map distinguishes.
const (
	StageResolve Stage = iota
	StageDispatch
	StageVerify
)

// A Fault is a failed check or action, as input for the failure map.
type Fault struct {
	Code   Code
	Detail string
	Stage  Stage
	// Dispatched means that input or a command reached the browser, Again that the action may be
	// dispatched once more.
	Dispatched bool
	Again      bool
	// Changed means that a digest, or for an adjustment the value, differs from before the
	// dispatch. Never marks a deferred action that nothing proved.
	Changed bool
	Never   bool
}

// A Failure is what the failure map makes of a fault.
type Failure struct {
	Code      Code // UNKNOWN for a code that the map does not have
	Class     string
	Reason    string
	Retryable bool
}

// Failure applies the failure map, version FailureMapVersion. It is defined for every fault.
func (f Fault) Failure() Failure {
	switch f.Code {
	case ElementNotFound, StaleReference:
		return Failure{f.Code, TargetResolutionFailure, ReasonTarget, true}
	case AmbiguousTarget:
		return Failure{f.Code, TargetResolutionFailure, ReasonTarget, false}
	case Timeout:
		return Failure{f.Code, ExecutionFailure, f.timeout(), !f.Dispatched || f.Again}
	case ActionRejected:
		return Failure{f.Code, ExecutionFailure, ReasonDispatch, slices.Contains(passing, f.Detail)}
	case VerificationFailed:
		return Failure{f.Code, VerificationFailure, f.split(), f.Again}
	case ExpectMismatch:
		return Failure{f.Code, VerificationFailure, f.split(), true}
	case ConvergenceFailed:
		return Failure{f.Code, ControlConvergenceFailure, f.split(), true}
	case SemanticMismatch:
		return Failure{f.Code, SemanticMismatchFailure, ReasonChanged, false}
	default:
		return Failure{Unknown, ExecutionFailure, ReasonDispatch, false}
	}
}

// passing lists the details of ACTION_REJECTED that may resolve by themselves.
var passing = []string{"not_visible", "zero_size", "obscured", "outside_viewport", "dialog_open", "owner_in_control"}

func (f Fault) timeout() string {
	switch f.Stage {
	case StageResolve:
		return ReasonTarget
	case StageDispatch:
		return ReasonDispatch
	default:
		return ReasonTimeout
	}
}

func (f Fault) split() string {
	switch {
	case f.Never:
		return ReasonTimeout
	case f.Changed:
		return ReasonChanged
	}
	return ReasonUnchanged
}

// Evidence is the input of the classifier. Requests is nil when none were supplied and empty when
// none were made.
type Evidence struct {
	Changed         bool  // ui_changed
	ExpectedVisible *bool // nil if unknown
	Action          Verb
	ActionType      string
	Requests        []page.RequestSeen
	LogErrors       int
	// Failed means that the action ended without its delta. A change of the page is then not its
	// success.
	Failed bool
}

// Classify says what an unverified action probably did. It guides what to do next and never
// declares success.
func Classify(e Evidence) *Classification {
	c := e.classify()
	if e.LogErrors > 0 {
		c.Reasoning += fmt.Sprintf("; the page logged %d error(s)", e.LogErrors)
	}
	return c
}

func (e Evidence) classify() *Classification {
	effect := e.ActionType
	if effect == "" && e.Action != "" {
		effect, _ = Effect(e.Action, nil, "")
	}
	bad := e.failing()
	switch {
	case !e.Failed && e.ExpectedVisible != nil && *e.ExpectedVisible:
		return &Classification{"success", "expected_visible: what was expected is visible"}
	case !e.Failed && e.Changed:
		return &Classification{"success", "ui_changed: the page changed"}
	case e.Changed && bad == nil:
		return &Classification{"ui_failure", "ui_changed: the page changed, and what was expected of it did not come"}
	case effect == "":
		return &Classification{"unknown", "the action was not supplied"}
	case bad != nil:
		return &Classification{"backend_failure", fmt.Sprintf("%s answered with status %d", bad.Endpoint, bad.Status)}
	case effect == LocalState:
		return &Classification{"no_op", "nothing changed in the page; use expect, a refreshed snapshot or a visibility check"}
	case e.Requests == nil:
		return &Classification{"unknown", "the page did not change and its requests were not supplied"}
	case len(e.Requests) == 0:
		return &Classification{"no_op", "the page did not change and made no requests"}
	case e.allGood():
		return &Classification{"ui_failure", "every request succeeded and the page did not change"}
	}
	return &Classification{"unknown", "the requests have no clear outcome"}
}

func (e Evidence) failing() *page.RequestSeen {
	for i := range e.Requests {
		if v := e.Requests[i].Verdict; v == "failure" || v == "retryable" {
			return &e.Requests[i]
		}
	}
	return nil
}

func (e Evidence) allGood() bool {
	for _, r := range e.Requests {
		if r.Verdict != "success" {
			return false
		}
	}
	return true
}

// Errors that cut a verb short.
var (
	errDeadline = errors.New("the deadline of the verb is over")
	errLost     = page.ErrLost
	errLease    = errors.New("the owner is in control")
)

// Details of faults.
const (
	detailLost      = "surface_lost"
	detailInternal  = "internal"
	detailDialog    = "dialog_open"
	detailOwner     = "owner_in_control"
	detailHost      = "host_denied"
	detailScheme    = "scheme_denied"
	detailUntrusted = "no_trusted_events"
	detailAlready   = "already_true_before"
	detailAbsent    = "delta_target_absent"
	detailRestless  = "changes_by_itself"
	detailNever     = "never_verified"
	detailUnread    = "state_unavailable"
)

// A fault is why an action, or one pass of it, failed.
type fault struct {
	code   Code
	detail string
	stage  Stage
}

// rawFault maps an error to a fault, by the kind of the error and never by its text.
func rawFault(err error, stage Stage) *fault {
	f := &fault{code: Unknown, detail: detailInternal, stage: stage}
	switch {
	case errors.Is(err, page.ErrLost):
		f.detail = detailLost
	case errors.Is(err, errLease):
		f.code, f.detail = ActionRejected, detailOwner
	case errors.Is(err, errDeadline), errors.Is(err, page.ErrHung), errors.Is(err, context.DeadlineExceeded):
		f.code, f.detail = Timeout, ""
	case errors.Is(err, page.ErrDialog):
		f.code, f.detail = ActionRejected, detailDialog
	case errors.Is(err, page.ErrGone):
		f.code, f.detail = StaleReference, ""
	case errors.Is(err, page.ErrScheme):
		f.code, f.detail = ActionRejected, detailScheme
	case errors.Is(err, page.ErrHost):
		f.code, f.detail = ActionRejected, detailHost
	case errors.Is(err, page.ErrKind):
		f.code, f.detail = SemanticMismatch, ""
	case errors.Is(err, page.ErrCertificate):
		f.detail = "certificate_error"
	}
	return f
}

// refusedFault returns the fault for a refused address to which the page went, or nil if there is
// none.
func refusedFault(h page.Happened) *fault {
	if len(h.Refused) == 0 {
		return nil
	}
	return rawFault(h.Refused[0], StageDispatch)
}

// unsent reports whether the kind of an error proves that nothing reached the browser. Any other
// error counts as sent.
func unsent(err error) bool {
	for _, before := range []error{page.ErrKey, page.ErrScheme, page.ErrHost, page.ErrKind, page.ErrGone, page.ErrDialog} {
		if errors.Is(err, before) {
			return true
		}
	}
	return false
}
