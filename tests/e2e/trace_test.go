package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/store"
)

// The page of a run with a browser: its card, its lines, and the trace as a download.
func TestBrowserOnRunPage(t *testing.T) {
	h, _ := open(t, tempDir(t))
	a, err := browser.BeginTrace(browser.Traces(h.Daemon.Host.DataDir), "run_traced")
	if err != nil {
		t.Fatal(err)
	}
	a.Action(engine.Click, engine.Trace{ActionID: "act_1", Outcome: "success"})
	s, err := a.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	st := h.Daemon.Host.Store
	row := store.Run{ID: "run_traced", ConnectionID: "shop", TraceID: "trc_0123456789abcdef", Status: "active",
		StartedAt: now, TriggerKind: "manual", Attempt: 1}
	lease, err := st.Acquire(t.Context(), row, "host", "boot", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var events []store.Event
	add := func(typ string, members map[string]any) {
		raw, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, store.Event{ID: "evt_0123456789abcdef", Type: typ, OccurredAt: now, RecordedAt: now,
			RunID: row.ID, ConnectionID: row.ConnectionID, NodeID: "collect", Data: raw})
	}
	surface := map[string]any{"surface_id": "sf_1", "profile": "shop"}
	add("run.started", map[string]any{"workflowId": "shop"})
	add("run.browser_surface_ready", surface)
	for i, d := range []map[string]any{
		{"action": "navigate", "role": "", "url_host": "shop.example", "verification_result": "verified", "attempts": 1},
		{"action": "click", "role": "button", "url_host": "shop.example", "verification_result": "verified", "attempts": 2},
		{"action": "type", "role": "textbox", "url_host": "shop.example", "verification_result": "inconclusive",
			"runtime_code": "VERIFICATION_FAILED"},
	} {
		add("run.browser_action", d)
		add("run.browser_egress_denied",
			map[string]any{"host": "metrics.advertising.example", "port": 443, "verdict": "host_denied", "count": i + 2})
	}
	add("run.browser_egress_denied",
		map[string]any{"host": "10.0.0.7", "port": 8443, "verdict": "address_denied", "count": 1})
	add("run.browser_surface_released", surface)
	add("artifact.created", map[string]any{"artifactId": "art_1", "artifactType": browser.TraceArtifact,
		"nodeId": "collect", "version": 1,
		"summary": "Browser trace, 3 actions", "mediaType": "application/zip", "size": s.Bytes, "digest": s.Digest})
	add("run.completed", map[string]any{"durationMs": 100})
	row.Status, row.FinishedAt = "succeeded", &now
	receipt, err := st.Submit(t.Context(), &store.Commit{Lease: lease, Run: &row, End: true, Events: events})
	if err == nil {
		_, err = receipt.Result()
	}
	if err != nil {
		t.Fatal(err)
	}

	b := signIn(t, h, false)
	b.open("/ui/runs/run_traced")
	for _, words := range []string{"Browser trace, 3 actions", "Actions proved", "Kept from",
		"metrics.advertising.example", "it was done, and what should follow did not"} {
		b.sees(words)
	}
	got := eval[string](b, `(() => { const r = new XMLHttpRequest(); r.open("GET", document.querySelector("aside a[download]").getAttribute("href"), false); r.send();
		return [r.status, r.getResponseHeader("Content-Disposition"), r.getResponseHeader("Content-Security-Policy")].join(" ") })()`)
	if want := `200 attachment; filename="browser-trace-run_traced.zip" sandbox`; got != want {
		t.Errorf("the link answers %q, want %q", got, want)
	}
	b.shot("light")
	b.media("dark")
	b.shot("dark")
	b.clean("the page of a run with a browser")
}
