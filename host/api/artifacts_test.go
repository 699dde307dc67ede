package api_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/store"
)

// traced stores a run of a connection that left a browser trace, and returns the
// file's path.
func traced(t *testing.T, id store.RunID, of store.ConnectionID, artifact string) string {
	t.Helper()
	dir := browser.Traces(shared.d.Host.DataDir)
	a, err := browser.BeginTrace(dir, string(id))
	if err != nil {
		t.Fatal(err)
	}
	a.Action(engine.Click, engine.Trace{ActionID: "act_1", Outcome: "success"})
	s, err := a.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{"artifactId": artifact, "artifactType": "browser-trace",
		"nodeId": "collect", "version": 1,
		"summary": "Browser trace, 1 actions", "mediaType": "application/zip", "size": s.Bytes, "digest": s.Digest})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	row := store.Run{ID: id, ConnectionID: of, TraceID: "trc_0123456789abcdef", Status: "active", StartedAt: now,
		TriggerKind: "manual", Attempt: 1}
	lease, err := theStore().Acquire(t.Context(), row, shared.d.Host.ID, shared.d.Host.Epoch, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	row.Status, row.FinishedAt = "succeeded", &now
	event := func(typ, data string) store.Event {
		return store.Event{ID: store.EventID("evt_0000000000000001"), Type: typ, OccurredAt: now, RunID: id, ConnectionID: of,
			NodeID: "collect", Data: json.RawMessage(data)}
	}
	receipt, err := theStore().Submit(t.Context(), &store.Commit{Lease: lease, Run: &row, End: true,
		Events: []store.Event{event("artifact.created", string(data)), event("run.completed", `{}`)}})
	if err == nil {
		_, err = receipt.Result()
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, s.Name)
}

// What a run left is listed, described and given out as a download that nothing
// shows, and that is written down.
func TestArtifacts(t *testing.T) {
	c := served(t)
	id := connection(t, "artifacts", "live")
	path := traced(t, "run_artifacts", id, "art_1")
	all := c.do("GET", "/v1/runs/run_artifacts/artifacts", nil).want(200)
	if len(all.list("data")) != 1 {
		t.Fatalf("%s", all.body)
	}
	one := c.do("GET", "/v1/runs/run_artifacts/artifacts/art_1", nil).want(200)
	for name, want := range map[string]string{"artifactId": "art_1", "artifactType": "browser-trace",
		"runId": "run_artifacts", "nodeId": "collect",
		"summary": "Browser trace, 1 actions", "mediaType": "application/zip",
		"contentUrl": "/v1/runs/run_artifacts/artifacts/art_1/content"} {
		if got := one.text(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	file := c.do("GET", one.text("contentUrl"), nil).want(200)
	kept, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(file.body, kept) {
		t.Errorf("%d bytes of %d, %v", len(file.body), len(kept), err)
	}
	if _, err := zip.NewReader(bytes.NewReader(file.body), int64(len(file.body))); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"Content-Disposition": `attachment; filename="browser-trace-run_artifacts.zip"`, "Content-Security-Policy": "sandbox",
		"X-Content-Type-Options": "nosniff", "Content-Type": "application/zip", "ETag": `"` + one.text("digest") + `"`} {
		if got := file.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if cached := file.header.Get("Cache-Control"); !strings.Contains(cached, "no-store") {
		t.Errorf("Cache-Control: %q", cached)
	}
	page, _, err := shared.d.Service.AuditEntries(t.Context(),
		host.AuditQuery{Action: "artifact.read", Target: "run_artifacts", Limit: 10})
	if err != nil || len(page) != 1 || page[0].Details["digest"] != one.text("digest") {
		t.Errorf("audit: %v %v", page, err)
	}
	if got := c.do("GET", "/v1/runs/run_artifacts/events/poll", nil).want(200); !strings.Contains(string(got.body),
		"artifact.created") {
		t.Errorf("event of the artifact: %s", got.body)
	}
}

// What is absent, forbidden, erased or of another run looks the same; nothing in
// a path leads to another file.
func TestArtifactsThatAreNotThere(t *testing.T) {
	c := served(t)
	id := connection(t, "artifacts-hidden", "live")
	path := traced(t, "run_hidden", id, "art_hidden")
	traced(t, "run_hidden2", id, "art_other")
	few := c.as(key(t, access.NewKey{Scopes: all, ConnectionIDs: []store.ConnectionID{"elsewhere"}}))
	poor := c.as(key(t, access.NewKey{Scopes: []access.Scope{access.RunsRead}}))
	for _, end := range []string{"", "/art_hidden", "/art_hidden/content"} {
		few.do("GET", "/v1/runs/run_hidden/artifacts"+end, nil).want(404, "not_found")
		poor.do("GET", "/v1/runs/run_hidden/artifacts"+end, nil).want(403, "forbidden")
		c.do("GET", "/v1/runs/run_none/artifacts"+end, nil).want(404, "not_found")
	}
	absent := c.do("GET", "/v1/runs/run_hidden/artifacts/art_none/content", nil).want(404, "not_found")
	hidden := few.do("GET", "/v1/runs/run_hidden/artifacts/art_hidden/content", nil).want(404, "not_found")
	if absent.text("message") != hidden.text("message") {
		t.Errorf("absent and hidden differ: %s and %s", absent.body, hidden.body)
	}
	c.do("GET", "/v1/runs/run_hidden/artifacts/art_other/content", nil).want(404, "not_found")
	c.do("GET", "/v1/runs/run_hidden/artifacts/..%2f..%2fdb/content", nil).want(404, "not_found")
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	c.do("GET", "/v1/runs/run_hidden/artifacts/art_hidden", nil).want(404, "not_found")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	c.do("GET", "/v1/runs/run_hidden/artifacts/art_hidden/content", nil).want(404, "not_found")
	if n := len(c.do("GET", "/v1/runs/run_hidden/artifacts", nil).want(200).list("data")); n != 0 {
		t.Errorf("%d are listed", n)
	}
}

// A file that was changed is not given out.
func TestArtifactThatWasChanged(t *testing.T) {
	c := served(t)
	path := traced(t, "run_changed", connection(t, "artifacts-changed", "live"), "art_changed")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	c.do("GET", "/v1/runs/run_changed/artifacts/art_changed/content", nil).want(409, "conflict")
}
