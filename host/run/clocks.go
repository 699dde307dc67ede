package run

import (
	"fmt"
	"time"
)

// Budgets limit the clocks of a run. Zero means unlimited.
type Budgets struct {
	Compute   time.Duration // CPU time of the worker
	Active    time.Duration // compute and work
	Stall     time.Duration // active time without an accepted message or finished call
	OwnerWait time.Duration
	Total     time.Duration // all but pauses
	Prepare   time.Duration // before run.started, without the wait for a slot
	Pause     time.Duration // paused time

	ExitGrace   time.Duration // from DONE until the guest has exited
	CancelGrace time.Duration // from a cancel request until the guest is stopped
	Drain       time.Duration // from a pause request until the guest pauses
}

// DefaultBudgets returns the budgets that apply unless a manifest lowers them.
func DefaultBudgets() Budgets {
	return Budgets{
		Compute: 10 * time.Minute, Active: 6 * time.Hour, Stall: 30 * time.Minute,
		OwnerWait: 24 * time.Hour, Total: 48 * time.Hour, Prepare: 2 * time.Minute, Pause: 24 * time.Hour,
		ExitGrace: 5 * time.Second, CancelGrace: 2 * time.Second, Drain: 5 * time.Second,
	}
}

// Lower applies the budgets of a manifest, which can only lower. Keys end in _ms; unknown ones are ignored.
func (b Budgets) Lower(manifest map[string]int64) Budgets {
	for key, field := range map[string]*time.Duration{
		"compute_ms": &b.Compute, "active_ms": &b.Active, "stall_ms": &b.Stall,
		"owner_wait_ms": &b.OwnerWait, "total_ms": &b.Total, "prepare_ms": &b.Prepare, "pause_ms": &b.Pause,
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

// clocks account for the time of a run.
//
// Invariant: work, owner, rate and the guest's own time never overlap, since at most one call is executed for
// the guest at a time.
type clocks struct {
	started  time.Time
	work     time.Duration
	owner    time.Duration
	rate     time.Duration
	compute  time.Duration // latest sample
	activity time.Duration // active time at the last accepted message or finished call

	since time.Time      // start of the span in progress
	span  *time.Duration // counter of that span: work, owner or rate; nil if none is in progress

	pauseTotal time.Duration // of pauses that are over
	pausedAt   time.Time     // start of the pause in progress, zero for none; no span counts meanwhile

	stalled bool // the host waits for disk space, and work does not count
}

// start sets when the run was accepted, and again when its guest starts.
func (c *clocks) start(now time.Time) { c.started = now }

// begin starts a span of work or, for owner, of waiting for the owner.
func (c *clocks) begin(now time.Time, owner bool) {
	span := &c.work
	if owner {
		span = &c.owner
	}
	c.beginSpan(now, span)
}

// beginRate starts a span of waiting for an origin's rate limit.
func (c *clocks) beginRate(now time.Time) { c.beginSpan(now, &c.rate) }

// waited returns the time spent waiting for the owner and for rate limits.
func (c *clocks) waited() (owner, rate time.Duration) { return c.owner, c.rate }

func (c *clocks) computeTime() time.Duration { return c.compute }

func (c *clocks) beginSpan(now time.Time, span *time.Duration) {
	c.end(now)
	c.since, c.span = now, span
}

// end closes the span in progress.
func (c *clocks) end(now time.Time) {
	if c.span != nil && c.pausedAt.IsZero() && (c.span != &c.work || !c.stalled) {
		*c.span += now.Sub(c.since)
	}
	c.span = nil
}

// pause stops all clocks but that of pauses. The span in progress, or the one that replaces it, continues after
// the pause.
func (c *clocks) pause(now time.Time) {
	if span := c.span; span != nil {
		c.beginSpan(now, span)
	}
	c.pausedAt = now
}

// stall sets whether the host waits for disk space. That time is not work of the run.
func (c *clocks) stall(now time.Time, on bool) {
	if c.span != nil {
		c.beginSpan(now, c.span)
	}
	c.stalled = on
}

func (c *clocks) resume(now time.Time) {
	if !c.pausedAt.IsZero() {
		c.pauseTotal, c.pausedAt, c.since = c.pausedBy(now), time.Time{}, now
	}
}

// pausedBy returns how long the run was paused in all.
func (c *clocks) pausedBy(now time.Time) time.Duration {
	if c.pausedAt.IsZero() {
		return c.pauseTotal
	}
	return c.pauseTotal + now.Sub(c.pausedAt)
}

// sample adds the span in progress to its counter and continues it.
func (c *clocks) sample(now time.Time, compute time.Duration) {
	if c.span != nil {
		c.beginSpan(now, c.span)
	}
	c.compute = max(c.compute, compute)
}

func (c *clocks) active() time.Duration { return c.compute + c.work }

func (c *clocks) touch() { c.activity = c.active() }

// exceeded returns the cause of a run that has used up a budget, nil for none.
func (c *clocks) exceeded(b Budgets, now time.Time) *cause {
	for _, x := range []struct {
		name          string
		spent, budget time.Duration
	}{
		{"compute", c.compute, b.Compute},
		{"active", c.active(), b.Active},
		{"stall", c.active() - c.activity, b.Stall},
		{"total", now.Sub(c.started) - c.pausedBy(now), b.Total},
		{"pause", c.pausedBy(now), b.Pause},
	} {
		if x.budget > 0 && x.spent >= x.budget {
			return timedOut(x.name, x.budget)
		}
	}
	return nil
}

func timedOut(deadline string, budget time.Duration) *cause {
	return &cause{reason: "run_timed_out", origin: "runtime", deadline: deadline,
		message: fmt.Sprintf("The run used up its %s budget of %s.", deadline, budget)}
}

// ownerLeft returns how long the run may still wait for its owner. ok is false if that is unlimited.
func (c *clocks) ownerLeft(b Budgets) (left time.Duration, ok bool) {
	if b.OwnerWait == 0 {
		return 0, false
	}
	return max(0, b.OwnerWait-c.owner), true
}

// snapshot returns what was used so far.
func (c *clocks) snapshot(now time.Time) clockState {
	c.sample(now, 0)
	return clockState{c.started, c.work, c.owner, c.rate, c.compute, c.activity, c.pausedBy(now)}
}

// restore continues from s, with a span of work or of waiting for the owner that began at since.
func (c *clocks) restore(s clockState, since time.Time, owner bool) {
	c.started, c.work, c.owner, c.rate, c.activity, c.pauseTotal = s.Started, s.Work, s.Owner, s.Rate, s.Activity, s.Pause
	c.compute = max(c.compute, s.Compute)
	c.since, c.span = since, &c.work
	if owner {
		c.span = &c.owner
	}
}
