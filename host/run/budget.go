package run

import (
	"fmt"
	"time"
)

// Budgets bound the clocks of a run (§19.1). Zero disables one (R171).
type Budgets struct {
	Compute   time.Duration // CPU time of the worker
	Active    time.Duration // compute and work
	Stall     time.Duration // active time without an accepted message or finished call
	OwnerWait time.Duration
	Total     time.Duration // everything but pauses
	Prepare   time.Duration // before run.started

	ExitGrace   time.Duration // from DONE to the guest's exit (R100)
	CancelGrace time.Duration // from a cancel request to the stop (R173)
}

// DefaultBudgets returns the defaults of §19.1.
func DefaultBudgets() Budgets {
	return Budgets{
		Compute: 10 * time.Minute, Active: 6 * time.Hour, Stall: 30 * time.Minute,
		OwnerWait: 24 * time.Hour, Total: 48 * time.Hour, Prepare: 2 * time.Minute,
		ExitGrace: 5 * time.Second, CancelGrace: 2 * time.Second,
	}
}

// Lower applies the budgets of a manifest, which may only lower (R171). Keys
// are those of §19.1; unknown ones are ignored.
func (b Budgets) Lower(manifest map[string]int64) Budgets {
	for key, field := range map[string]*time.Duration{
		"compute_ms": &b.Compute, "active_ms": &b.Active, "stall_ms": &b.Stall,
		"owner_wait_ms": &b.OwnerWait, "total_ms": &b.Total, "prepare_ms": &b.Prepare,
	} {
		if ms, ok := manifest[key]; ok {
			d := time.Duration(min(ms, int64(time.Hour/time.Millisecond)*24*365)) * time.Millisecond
			if *field == 0 || d < *field {
				*field = d
			}
		}
	}
	return b
}

// clocks account for every moment of a run (R169).
//
// Invariant: work, owner and the guest's own time never overlap: at most one
// call is being executed for the guest at a time.
type clocks struct {
	started  time.Time
	work     time.Duration
	owner    time.Duration
	compute  time.Duration // latest sample
	activity time.Duration // active time at the last accepted message or finished call

	since   time.Time // start of the span in progress
	waiting bool      // the span belongs to the owner, otherwise to work
	open    bool      // a span is in progress
}

// begin starts a span of work, or of waiting for the owner.
func (c *clocks) begin(now time.Time, owner bool) {
	c.end(now)
	c.since, c.waiting, c.open = now, owner, true
}

// end closes the span in progress.
func (c *clocks) end(now time.Time) {
	if !c.open {
		return
	}
	if c.waiting {
		c.owner += now.Sub(c.since)
	} else {
		c.work += now.Sub(c.since)
	}
	c.open = false
}

// sample folds the running span into the totals and goes on.
func (c *clocks) sample(now time.Time, compute time.Duration) {
	if c.open {
		c.begin(now, c.waiting)
	}
	c.compute = max(c.compute, compute)
}

func (c *clocks) active() time.Duration { return c.compute + c.work }

func (c *clocks) touch() { c.activity = c.active() }

// over names the first budget that has ended, "" for none.
func (c *clocks) over(b Budgets, now time.Time) string {
	for _, x := range []struct {
		name          string
		spent, budget time.Duration
	}{
		{"compute", c.compute, b.Compute},
		{"active", c.active(), b.Active},
		{"stall", c.active() - c.activity, b.Stall},
		{"total", now.Sub(c.started), b.Total},
	} {
		if x.budget > 0 && x.spent >= x.budget {
			return x.name
		}
	}
	return ""
}

// ownerLeft is how long the owner may still be waited for; ok is false when
// the budget is unlimited.
func (c *clocks) ownerLeft(b Budgets) (left time.Duration, ok bool) {
	if b.OwnerWait == 0 {
		return 0, false
	}
	return max(0, b.OwnerWait-c.owner), true
}

func overText(deadline string, b Budgets) string {
	limit := map[string]time.Duration{"compute": b.Compute, "active": b.Active, "stall": b.Stall, "total": b.Total}[deadline]
	return fmt.Sprintf("The run used up its %s budget of %s.", deadline, limit)
}
