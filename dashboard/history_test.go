package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// over ends a run with a result.
func (s *site) over(lease store.Lease, status string, event string, result map[string]any) {
	s.t.Helper()
	row, err := s.store.Run(s.t.Context(), lease.RunID)
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now()
	row.Status, row.Phase, row.FinishedAt, row.Result = status, "", &now, data(result)
	receipt, err := s.store.Submit(s.t.Context(), &store.Commit{Lease: lease,
		Events: []store.Event{{ID: "evt_0123456789abcdef", Type: event, OccurredAt: time.Now(), RunID: lease.RunID,
			ConnectionID: lease.ConnectionID, TraceID: lease.TraceID, Data: data(result)}},
		Run: &row, End: true})
	if err == nil {
		_, err = receipt.Result()
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// The overview sums up the day, and has the runs of each connection as bars that lead to
// them.
func TestOverviewOfToday(t *testing.T) {
	s := open(t)
	soon := time.Now().Add(3 * time.Hour)
	s.host.connections = []host.Connection{{ConnectionID: "bank",
		Schedule: &host.Schedule{ConnectionID: "bank", NextDueAt: &soon}}}
	for i := range 3 {
		lease := s.run(store.RunID(fmt.Sprintf("run_%d", i)), "bank",
			store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "bank"})})
		if i == 1 {
			s.over(lease, "failed", "run.failed",
				map[string]any{"records_flushed": 5, "usage": map[string]int{"bytes_in": 1024}})
		} else {
			s.over(lease, "succeeded", "run.completed",
				map[string]any{"records_flushed": 1000, "usage": map[string]int{"bytes_in": 1024}})
		}
	}
	page := s.page("/ui/")
	for _, want := range []string{"<dt>Runs today</dt><dd>3<", "<dd>2\u202f005<", `<dd class="bad-text">1<`,
		"<dd>3.0 KiB<", `<a href="/ui/runs/run_1" aria-label="failed, `, "bank, " + soon.UTC().Format("2 Jan 2006, 15:04")} {
		if !strings.Contains(page, want) {
			t.Errorf("the overview lacks %s", want)
		}
	}
	for find, want := range map[string]bool{"run_1": true, "BANK": true, "by hand": true, "nothing like it": false} {
		if page := s.page("/ui/runs?find=" + strings.ReplaceAll(find, " ", "+")); strings.Contains(page,
			`href="/ui/runs/run_1"`) != want {
			t.Errorf("%q finds the run: %v", find, !want)
		}
	}
	if page := s.page("/ui/runs?status=failed&find=bank"); !strings.Contains(page, `find=bank&amp;status=completed`) ||
		strings.Contains(page, "/ui/runs/run_2") {
		t.Error("a chip forgets what was looked for, or the list what was chosen")
	}
}

// The page of a run says how it is in a sentence, and when it did what.
func TestRunStages(t *testing.T) {
	s := open(t)
	s.host.info.Limits = map[string]int64{"budget.compute": 1000, "budget.total": 60_000, "budget.stall": 5000}
	lease := s.run("run_1", "bank", store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "bank"})},
		store.Event{Type: "run.batch_ingested", Stream: "notes",
			Data: data(map[string]any{"stream": "notes", "records_attempted": 500, "records_accepted": 500,
				"records_flushed": 500})},
		store.Event{Type: "run.interaction_required", InteractionID: "q", Data: data(map[string]any{"kind": "otp"})})
	page := s.page("/ui/runs/run_1")
	for _, want := range []string{`class="verdict"`, "so far.", `<span class="breakable"><bdi hx-disable>notes</bdi>`,
		"Waits for you</bdi>", "records a second after"} {
		if !strings.Contains(page, want) {
			t.Errorf("a run that waits lacks %s", want)
		}
	}
	s.over(lease, "failed", "run.failed",
		map[string]any{"error": map[string]string{"code": "x", "message": "no"},
			"terminal_reason": "connector_reported_failed", "usage": map[string]int{"cpu_ms": 850, "wall_ms": 3000},
			"memory": map[string]any{"every_ms": 1, "bytes": []int{1 << 20, 3 << 20, 2 << 20}}})
	if page := s.page("/ui/runs/run_1"); !strings.Contains(page, "It failed: no. What") {
		_, said, _ := strings.Cut(page, `class="verdict"`)
		t.Errorf("no verdict on a failure: %.300s", said)
	}
	for _, want := range []string{"3.0 MiB of memory", `class="area" d="M0 160L0 106.67H`, "850 ms of 1.0 s",
		`class="warn" width="85"`, "3.0 s of 1 min", `class="accent" width="5"`, "<dd>5.0 s</dd>"} {
		if page := s.page("/ui/runs/run_1"); !strings.Contains(page, want) {
			t.Errorf("the budgets lack %s", want)
		}
	}
}
