package engine

import "slices"

// Strategies of recovery.
const (
	ReResolve          = "re_resolve"
	AlternateCandidate = "alternate_candidate"
	StateRefresh       = "state_refresh"
	RetryAdjustment    = "retry_adjustment"
	StepBack           = "step_back"
)

// strategies are what recovery may try, in the order in which it tries them.
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

// A Situation is what decides whether a strategy is permitted.
type Situation struct {
	Fault
	ByID       bool // the target is an element id
	Rebind     bool
	Alternates bool // of AMBIGUOUS_TARGET: they differ by more than 0.05 now
	MoreModes  bool // another interaction mode, or tolerance that the guest allowed
}

// Permitted are the strategies that may be tried, in order; none is the end of the
// action. Budgets and identical cycles are the engine's to see.
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

// terminal are the rows whose gate closes on all strategies.
func (s Situation) terminal(f Failure) bool {
	again := !s.Dispatched || s.Again
	switch f.Code {
	case StaleReference:
		return s.ByID && !s.Rebind
	case Unknown:
		return !again || s.Detail == "surface_lost" || s.Detail == "internal"
	case VerificationFailed:
		return s.Detail == DetailReverted // what is wrong is another action's
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

// moves are the state changes that the lifecycle allows; "" is the start.
var moves = map[string][]string{
	"":         {Resolved, Failed},
	Resolved:   {Dispatched, Failed, Pending},
	Dispatched: {Pending, Failed},
	Pending:    {Verified, Failed},
}

// CanMove reports whether an action may go from one state to another, within one pass.
// Resolved to pending is for a delta that held already. A recovery cycle enters
// resolved again from every state that is not final.
func CanMove(from, to string, newCycle bool) bool {
	if newCycle && to == Resolved {
		return from != Verified && from != Failed
	}
	return slices.Contains(moves[from], to)
}

// Final reports whether nothing follows a state.
func Final(state string) bool { return state == Verified || state == Failed }
