package engine

import "slices"

// Recovery strategies.
const (
	ReResolve          = "re_resolve"
	AlternateCandidate = "alternate_candidate"
	StateRefresh       = "state_refresh"
	RetryAdjustment    = "retry_adjustment"
	StepBack           = "step_back"
)

// strategies lists what recovery tries for each code, in order.
var strategies = map[Code][]string{
	ElementNotFound:    {StateRefresh, ReResolve},
	StaleReference:     {ReResolve, StateRefresh},
	AmbiguousTarget:    {ReResolve, AlternateCandidate},
	Timeout:            {StateRefresh, RetryAdjustment},
	Unknown:            {StateRefresh, ReResolve},
	ActionRejected:     {StateRefresh, AlternateCandidate},
	VerificationFailed: {StateRefresh, StepBack},
	ExpectMismatch:     {StateRefresh, StepBack},
	ConvergenceFailed:  {RetryAdjustment},
	SemanticMismatch:   {StateRefresh, AlternateCandidate},
}

// A Situation holds what decides whether a strategy is permitted.
type Situation struct {
	Fault
	ByID       bool // the target is an element id
	Rebind     bool
	Alternates bool // candidates of AMBIGUOUS_TARGET now differ by more than 0.05
	MoreModes  bool // another interaction mode or a wider tolerance is left
}

// Permitted returns the strategies that may be tried, in order; none ends the action. The engine
// checks budgets and identical cycles.
func (s Situation) Permitted() []string {
	f := s.Failure()
	if s.terminal(f) {
		return nil
	}
	var out []string
	for _, name := range strategies[f.Code] {
		if s.permits(f, name) {
			out = append(out, name)
		}
	}
	return out
}

// terminal reports whether no strategy is permitted at all.
func (s Situation) terminal(f Failure) bool {
	again := !s.Dispatched || s.Again
	switch f.Code {
	case StaleReference:
		return s.ByID && !s.Rebind
	case Unknown:
		return !again || s.Detail == "surface_lost" || s.Detail == "internal"
	case VerificationFailed:
		return s.Detail == DetailReverted // another action went wrong
	case ActionRejected:
		return !slices.Contains(passing, s.Detail) || s.Detail == "dialog_open" || s.Detail == "owner_in_control"
	}
	return false
}

func (s Situation) permits(f Failure, name string) bool {
	again := !s.Dispatched || s.Again
	switch name {
	case RetryAdjustment:
		return f.Retryable && s.MoreModes && again
	case StepBack:
		return again
	case AlternateCandidate:
		switch f.Code {
		case AmbiguousTarget:
			return s.Alternates && s.Again
		case ActionRejected:
			return s.Detail == "obscured" && again
		}
		return s.Alternates && again
	}
	return true
}

// moves lists the allowed transitions; "" is the start.
var moves = map[string][]string{
	"":         {Resolved, Failed},
	Resolved:   {Dispatched, Failed, Pending},
	Dispatched: {Pending, Failed},
	Pending:    {Verified, Failed},
}

// CanMove reports whether an action may go from one state to another within a pass. Resolved to
// pending is for a delta that held already. A recovery cycle re-enters resolved from every state
// that is not final.
func CanMove(from, to string, newCycle bool) bool {
	if newCycle && to == Resolved {
		return from != Verified && from != Failed
	}
	return slices.Contains(moves[from], to)
}

// Final reports whether a state is final.
func Final(state string) bool { return state == Verified || state == Failed }
