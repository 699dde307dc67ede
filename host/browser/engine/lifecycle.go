package engine

import "slices"

// moves are those of B43; "" is the start.
var moves = map[string][]string{
	"":         {Resolved, Failed},
	Resolved:   {Dispatched, Failed, Pending},
	Dispatched: {Pending, Failed},
	Pending:    {Verified, Failed},
}

// CanMove reports whether an action may go from one state to another, within one
// pass. Resolved to pending is for a delta that held already (B21). A recovery
// cycle enters resolved again from every state that is not final.
func CanMove(from, to string, newCycle bool) bool {
	if newCycle && to == Resolved {
		return from != Verified && from != Failed
	}
	return slices.Contains(moves[from], to)
}

// Final reports whether nothing follows a state.
func Final(state string) bool { return state == Verified || state == Failed }
