package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/sluicehost/sluice/host/telemetry"
	"github.com/sluicehost/sluice/store"
)

var update = flag.Bool("update", false, "rewrite golden files")

// report reports everything once.
func report(m *telemetry.Metrics) {
	m.RunStarted("manual")
	m.RunEnded("succeeded", "", time.Minute)
	m.RunEnded("failed", "connector_trapped", time.Second)
	m.InteractionOpened("otp")
	m.InteractionClosed("success")
	m.Request("GET", "/v1/runs/:runId", 200, time.Millisecond)
	m.Delivery("delivered")
	for _, end := range []string{"succeeded", "failed", "cancelled"} { // host.Tick
		m.Tick(end)
	}
	m.Skip("not_ready: secret_missing")
	m.Browser("actions_total", "action", "click", "category", "Selection", "action_type", "side_effect",
		"result", "verified")
	m.Browser("recovery_total", "class", "VerificationFailure", "strategy", "state_refresh", "result", "success")
	m.Ask(telemetry.Sources{
		Runs:        func() telemetry.Runs { return telemetry.Runs{Active: 4, Queued: 1, Waiting: 2, Paused: 1} },
		Workers:     func() telemetry.Workers { return telemetry.Workers{Blank: 1, Busy: 3} },
		Space:       func() (telemetry.Space, bool) { return telemetry.Space{Used: 1000, Free: 2000}, true },
		Subscribers: func() int { return 7 },
		Open:        func() int { return 2 },
		Polling:     func() bool { return true },
	})
}

func written(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// ours leaves out Go's and the process's own metrics, and what measures time.
func ours(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		if strings.HasPrefix(name, "sluice_") && !strings.Contains(line, "_bucket{") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// Names, labels and help are what others build on. Whoever changes them
// changes testdata/metrics.txt with -update, and says so in the changelog.
func TestNames(t *testing.T) {
	m := telemetry.NewMetrics("1.2.3", "abc")
	report(m)
	st := telemetry.Measure(&committing{ack: store.Ack{Changed: 2, Unchanged: 1}}, m)
	submit(t, st, &store.Commit{Batches: []*store.Batch{batch(3)}})
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	got := ours(written(t, m))
	got = replaceVersion(got)
	if *update {
		if err := os.WriteFile("testdata/metrics.txt", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("metrics changed (-want +got):\n%s", d)
	}
}

// replaceVersion removes what differs between machines and runs.
func replaceVersion(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if i := strings.Index(line, `go="`); i >= 0 {
			j := strings.Index(line[i+4:], `"`)
			line = line[:i+4] + "GO" + line[i+4+j:]
		}
		if strings.HasPrefix(line, "sluice_batch_seconds_sum") || strings.HasPrefix(line, "sluice_store_commit_seconds_sum") {
			line = line[:strings.Index(line, " ")] + " TIME\n"
		}
		out.WriteString(line)
	}
	return out.String()
}

// The text is what a Prometheus reads, by its own rules for names and help.
func TestLint(t *testing.T) {
	m := telemetry.NewMetrics("1.2.3", "abc")
	report(m)
	problems, err := promlint.New(strings.NewReader(written(t, m))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "sluice_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// Whatever is reported, labels stay within their lists.
func TestLabelsAreBounded(t *testing.T) {
	m := telemetry.NewMetrics("1.2.3", "abc")
	report(m)
	lines := strings.Count(written(t, m), "\n")
	for i := range 2000 {
		s := fmt.Sprintf("secret-%d", i)
		m.RunStarted(s)
		m.RunEnded(s, s, 0)
		m.InteractionOpened(s)
		m.InteractionClosed(s)
		m.Request(s, s, 100000+i, 0)
		m.Delivery(s)
		m.Tick(s)
		m.Skip(s + ": secret-")
		m.Browser("actions_total", "action", s, "category", s, "action_type", s, "result", s)
		m.Browser("recovery_total", "class", s, "strategy", s, "result", s, s, s)
		m.Browser("network_inspections_total", "action_type", s)
		m.Browser(s)
	}
	text := written(t, m)
	if strings.Contains(text, "secret-") {
		t.Error("a label holds what was reported")
	}
	if more := strings.Count(text, "\n") - lines; more > 100 {
		t.Errorf("%d lines more", more)
	}
	for i := range 2000 {
		m.Request("GET", fmt.Sprintf("/v1/%d", i), 200, 0)
	}
	if n := strings.Count(written(t, m), "sluice_http_requests_total{"); n > 300 {
		t.Errorf("%d series of requests", n)
	}
}

// A route that lives in a request's buffer is copied.
func TestRouteIsCopied(t *testing.T) {
	m := telemetry.NewMetrics("1.2.3", "abc")
	m.Request("GET", "/v1/runs", 200, 0)
	if !strings.Contains(written(t, m), `sluice_http_requests_total{method="GET",route="/v1/runs",status="200"} 1`) {
		t.Error("the request is not counted")
	}
}

// committing is a store that says of every commit the same.
type committing struct {
	store.Store
	ack store.Ack
	err error
}

func (c *committing) Submit(context.Context, *store.Commit) (*store.Receipt, error) {
	r, settle := store.NewReceipt()
	settle(c.ack, c.err)
	return r, nil
}

func (c *committing) Close() error { return nil }

func (c *committing) PerStream() bool { return true }

func (c *committing) Now() time.Time { return time.Unix(1, 0) }

func (c *committing) Acquire(context.Context, store.Run, string, string, time.Duration,
	...store.Write) (store.Lease, error) {
	return store.Lease{}, c.err
}

func batch(n int) *store.Batch {
	b := &store.Batch{}
	for range n {
		b.Append(store.Change{Key: []byte("k"), Data: []byte(`{}`)})
	}
	return b
}

func submit(t *testing.T, st store.Store, c *store.Commit) {
	t.Helper()
	r, err := st.Submit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
}

// What runs commit is what is counted, once it is durable.
func TestMeasure(t *testing.T) {
	m := telemetry.NewMetrics("1.2.3", "abc")
	inner := &committing{ack: store.Ack{Changed: 4, Unchanged: 1}}
	st := telemetry.Measure(inner, m)
	if at := store.Now(st); at.Unix() != 1 {
		t.Errorf("the clock says %s", at)
	}
	if !st.PerStream() {
		t.Error("PerStream of the store below is hidden")
	}
	if _, err := st.Acquire(t.Context(), store.Run{TriggerKind: "scheduled"}, "", "", 0); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	over := began.Add(90 * time.Second)
	submit(t, st, &store.Commit{Batches: []*store.Batch{batch(2), batch(3)}, Ask: &store.Interaction{Kind: "otp"}})
	submit(t, st, &store.Commit{
		Run: &store.Run{Status: "failed", StartedAt: began, FinishedAt: &over}, End: true,
		Events: []store.Event{
			{Type: "run.interaction_completed", Data: []byte(`{"status":"timeout"}`)},
			{Type: "run.failed", Data: []byte(`{"reason":"run_timed_out","status":"x"}`)},
		},
	})
	submit(t, st, &store.Commit{
		Run: &store.Run{Status: "succeeded", StartedAt: began, FinishedAt: &over}, End: true,
		Events: []store.Event{{Type: "run.completed", Data: []byte(`{"outcome":"partial"}`)}},
	})
	for _, err := range []error{store.ErrFenced, store.ErrNoSpace, errors.New("other")} {
		inner.err = err
		submit(t, st, &store.Commit{Batches: []*store.Batch{batch(9)}, Ask: &store.Interaction{Kind: "otp"}})
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	text := written(t, m)
	for _, want := range []string{
		`sluice_runs_started_total{trigger="scheduled"} 1`,
		`sluice_runs_total{outcome="failed",reason="run_timed_out"} 1`,
		`sluice_run_seconds_sum{outcome="failed"} 90`,
		`sluice_runs_total{outcome="partial",reason="none"} 1`,
		`sluice_batch_records_count 2`,
		`sluice_batch_records_sum 5`,
		`sluice_records_total{result="changed"} 12`,
		`sluice_records_total{result="unchanged"} 3`,
		`sluice_interactions_opened_total{kind="otp"} 1`,
		`sluice_interactions_closed_total{status="timeout"} 1`,
		`sluice_store_commits_total{result="ok"} 3`,
		`sluice_store_commits_total{result="fenced"} 1`,
		`sluice_store_commits_total{result="full"} 1`,
		`sluice_store_commits_total{result="failed"} 1`,
		`sluice_store_commit_seconds_count 3`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("missing %s", want)
		}
	}
}
