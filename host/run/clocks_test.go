package run

import (
	"testing"
	"time"
)

// TestClocks: every moment counts for one clock, none of a pause for any but its own,
// and none of a full disk as work.
func TestClocks(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	c := &clocks{}
	c.start(at)
	pass := func(seconds int) time.Time {
		at = at.Add(time.Duration(seconds) * time.Second)
		return at
	}
	c.begin(at, false)
	c.begin(pass(3), true) // three seconds of work
	c.beginRate(pass(5))   // five of the owner's
	c.pause(pass(7))       // seven of a rate
	c.resume(pass(100))
	c.begin(pass(1), false) // one more of the rate
	c.stall(pass(2), true)
	c.stall(pass(50), false)
	c.end(pass(4))
	c.sample(at, 10*time.Second)
	owner, rate := c.waited()
	if c.work != 9*time.Second || owner != 5*time.Second || rate != 8*time.Second || c.pausedBy(at) != 100*time.Second {
		t.Errorf("work %s, owner %s, rate %s, paused %s", c.work, owner, rate, c.pausedBy(at))
	}
	if c.active() != 19*time.Second {
		t.Errorf("active %s", c.active())
	}
}

// TestBudgets: the first budget that is used up ends the run by its name; zero is none.
func TestBudgets(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	c := &clocks{started: at, work: 30 * time.Second, compute: 20 * time.Second, owner: time.Hour}
	for _, x := range []struct {
		b    Budgets
		want string
	}{
		{Budgets{}, ""},
		{Budgets{Compute: 21 * time.Second, Active: 51 * time.Second, Total: 3 * time.Minute}, ""},
		{Budgets{Compute: 20 * time.Second, Active: 50 * time.Second}, "compute"},
		{Budgets{Active: 50 * time.Second}, "active"},
		{Budgets{Stall: 49 * time.Second}, "stall"},
		{Budgets{Total: 2 * time.Minute}, "total"},
	} {
		got := ""
		if end := c.exceeded(x.b, at.Add(2*time.Minute)); end != nil {
			got = end.deadline
		}
		if got != x.want {
			t.Errorf("%+v: %q ended, want %q", x.b, got, x.want)
		}
	}
	if end := c.exceeded(Budgets{Pause: time.Second}, at); end != nil {
		t.Errorf("%q ended, and the run was never paused", end.deadline)
	}
	if left, bounded := c.ownerLeft(Budgets{OwnerWait: time.Minute}); left != 0 || !bounded {
		t.Errorf("the owner has %s, %v", left, bounded)
	}
}

// TestPauseBudget: paused time costs no budget but its own.
func TestPauseBudget(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	c := &clocks{}
	c.start(at)
	c.begin(at, false)
	c.pause(at.Add(time.Second))
	now := at.Add(101 * time.Second)
	c.sample(now, 0)
	others := Budgets{Compute: 2 * time.Second, Active: 2 * time.Second, Stall: 2 * time.Second, Total: 2 * time.Second}
	if end := c.exceeded(others, now); end != nil {
		t.Errorf("%q ended while the run was paused", end.deadline)
	}
	others.Pause = 100 * time.Second
	if end := c.exceeded(others, now); end == nil || end.deadline != "pause" {
		t.Errorf("ended with %+v", end)
	}
}
