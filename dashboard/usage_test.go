package dashboard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// TestSpent: the budgets of a run that is not over are used as its host counts them: pauses are no time of the run.
func TestSpent(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	live := &host.LiveRun{Usage: host.Usage{CPU: 250 * time.Millisecond, OwnerWait: 7 * time.Second, Paused: 20 * time.Second}}
	got := spent(store.Run{StartedAt: began}, live, began.Add(time.Minute))
	want := map[string]int64{"budget.compute": 250, "budget.owner_wait": 7000, "budget.pause": 20_000, "budget.total": 40_000}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
