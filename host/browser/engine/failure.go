package engine

import "slices"

// Classes of failures (B88).
const (
	TargetResolutionFailure   = "TargetResolutionFailure"
	ExecutionFailure          = "ExecutionFailure"
	VerificationFailure       = "VerificationFailure"
	ControlConvergenceFailure = "ControlConvergenceFailure"
	SemanticMismatchFailure   = "SemanticMismatchFailure"
)

// Reasons of failures (B88).
const (
	ReasonTarget    = "target_resolution_failure"
	ReasonDispatch  = "dispatch_failure"
	ReasonTimeout   = "verification_timeout"
	ReasonChanged   = "unexpected_state_delta"
	ReasonUnchanged = "no_state_change"
)

// A Stage is how far an action came before it failed.
type Stage int

// The stages that the failure map tells apart.
const (
	StageResolve Stage = iota
	StageDispatch
	StageVerify
)

// A Fault is a failed check or action, as the failure map needs to know it.
type Fault struct {
	Code   Code
	Detail string
	Stage  Stage
	// Dispatched: input or a command reached the browser. Again: the action may be
	// dispatched once more (B95).
	Dispatched bool
	Again      bool
	// Changed: a digest, or for an adjustment the value, differs from the one of
	// before the dispatch. Never: a deferred action that nothing proved (B53).
	Changed bool
	Never   bool
}

// A Failure is what the map makes of a fault.
type Failure struct {
	Code      Code // UNKNOWN for one that the map does not have
	Class     string
	Reason    string
	Retryable bool
}

// Failure is the failure map (B88), version FailureMapVersion. It is total.
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

// passing are the details of ACTION_REJECTED that may pass by themselves (B90).
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
