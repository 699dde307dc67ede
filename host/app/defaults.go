package app

import (
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
)

// DefaultOptions are Options with the defaults of runtime.md §19.1 and security.md
// section 17 written out, for who changes one of them.
func DefaultOptions() Options {
	return Options{Budgets: run.DefaultBudgets(), Pace: network.DefaultPace()}
}
