package app_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// collect runs the connection ask with as many questions that answer themselves,
// which is what its cursor counts.
func collect(t *testing.T, h *app.Host, s *app.Service, questions int) store.Run {
	t.Helper()
	list := strings.TrimSuffix(strings.Repeat(`{"kind": "back_off", "message": "Busy.", "polls": 1},`, questions), ",")
	if _, err := h.Store.ChangeConnection(t.Context(), "ask", func(c *store.Connection) error {
		c.Settings = json.RawMessage(`{"pause_ms": 0, "ask": [` + list + `]}`)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	rec := over(t, h, startRun(t, s, host.StartRun{WorkflowID: "ask"}).ID)
	if rec.Status != "succeeded" {
		t.Fatalf("%s %s", rec.Status, rec.Result)
	}
	return rec
}

func forked(t *testing.T, h *app.Host, s *app.Service, src store.RunID,
	from uint64) (rec store.Run, started map[string]any) {
	t.Helper()
	rec, err := s.ForkRun(host.As(t.Context(), owner), host.ForkRun{Source: src, FromSeq: from})
	if err != nil {
		t.Fatal(err)
	}
	if rec = over(t, h, rec.ID); rec.Status != "succeeded" {
		t.Fatalf("%s %s", rec.Status, rec.Result)
	}
	if f := rec.Request.ForkedFrom; f == nil || f.RunID != src || f.FromSeq != from || f.Mode != "branch" {
		t.Errorf("forked from %+v", f)
	}
	return rec, timeline(t, h, rec.ID, "run.started")[0]
}

func head(t *testing.T, h *app.Host, id store.RunID) uint64 {
	t.Helper()
	at, err := h.Store.RunHead(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return at.Next
}

func cursor(t *testing.T, h *app.Host) string {
	t.Helper()
	states, err := h.Store.States(t.Context(), "ask", "")
	if err != nil || len(states) != 1 {
		t.Fatalf("%v %v", states, err)
	}
	return string(states[0].Cursor)
}

// A branch begins with the cursors as of the event, also those that the source itself began
// with, and moves no cursor backwards.
func TestFork(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	connect(t, h, installAs(t, h, askModule(t), nil), "ask", "{}")
	first := collect(t, h, s, 0)
	second := collect(t, h, s, 1)
	if got := cursor(t, h); got != `{"asked":1}` {
		t.Fatalf("the cursor is %s", got)
	}

	_, started := forked(t, h, s, first.ID, 0)
	if started["state_from"] != nil || started["collection_mode"] != "full_refresh" ||
		started["state_commit_intent"] != "do_not_persist" {
		t.Errorf("from the beginning of the first: %v", started)
	}
	branch, started := forked(t, h, s, second.ID, 1)
	from, _ := started["state_from"].(map[string]any)
	if from["answers"] != string(first.ID) || started["collection_mode"] != "incremental" ||
		started["state_commit_intent"] != "do_not_persist" {
		t.Errorf("from the beginning of the second: %v", started)
	}
	_, started = forked(t, h, s, branch.ID, head(t, h, branch.ID)-1)
	if from, _ = started["state_from"].(map[string]any); from["answers"] != string(first.ID) {
		t.Errorf("from a branch, which committed nothing: %v", started)
	}
	if got := cursor(t, h); got != `{"asked":1}` {
		t.Errorf("a branch moved the cursor to %s", got)
	}
	third, started := forked(t, h, s, second.ID, head(t, h, second.ID)-1)
	if from, _ = started["state_from"].(map[string]any); from["answers"] != string(second.ID) ||
		started["state_commit_intent"] != "commit_on_success" {
		t.Errorf("from the end of the second: %v", started)
	}
	if third.TriggerKind != "manual" {
		t.Error(third.TriggerKind)
	}
}

// What cannot be forked, and why.
func TestNoFork(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	c := installAs(t, h, askModule(t), nil)
	connect(t, h, c, "ask", "{}")
	first := collect(t, h, s, 0)
	second := collect(t, h, s, 1)
	fork := func(id store.RunID, from uint64) (string, any) {
		_, err := s.ForkRun(host.As(t.Context(), owner), host.ForkRun{Source: id, FromSeq: from})
		code, details := refusalCode(err)
		return code, details["reason"]
	}
	if _, err := s.ForkRun(host.As(t.Context(), owner), host.ForkRun{Source: "run_none"}); !errors.Is(err,
		store.ErrNotFound) {
		t.Error(err)
	}
	if code, _ := fork(first.ID, head(t, h, first.ID)); code != "validation_error" {
		t.Error(code)
	}
	if err := h.Store.Prune(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	if code, _ := fork(first.ID, 0); code != "events_expired" {
		t.Error(code)
	}
	if code, reason := fork(second.ID, 1); code != "replay_unavailable" || reason != "checkpoint_pruned" {
		t.Errorf("what it began with is gone: %s %v", code, reason)
	}
	forked(t, h, s, second.ID, head(t, h, second.ID)-1) // and what it committed is not

	long := past(t, h, c, `{"truncated":true,"bytes":5000,"sha256":"00"}`)
	collect(t, h, s, 2)
	if code, reason := fork(long, 2); code != "replay_unavailable" || reason != "checkpoint_pruned" {
		t.Errorf("its cursor is not on the timeline: %s %v", code, reason)
	}
	if err := h.Store.DeleteConnector(t.Context(), c.ID, false); err != nil {
		t.Fatal(err)
	}
	if code, reason := fork(second.ID, 1); code != "replay_unavailable" || reason != "module_missing" {
		t.Errorf("without its module: %s %v", code, reason)
	}
}

// past is a run of the connection that is over, whose timeline shows a cursor in this form.
func past(t *testing.T, h *app.Host, c store.Connector, shown string) store.RunID {
	t.Helper()
	now := time.Now()
	rec := store.Run{ID: run.NewRunID(now), ConnectorID: c.ID, ConnectionID: "ask", Digest: c.Digest, Status: "active",
		StartedAt: now, TriggerKind: "manual", Attempt: 1}
	lease, err := h.Store.Acquire(t.Context(), rec, h.ID, h.Epoch, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	rec.Status, rec.FinishedAt = "succeeded", &now
	event := func(typ, data string) store.Event {
		return store.Event{ID: store.EventID("evt_" + typ), Type: typ, RunID: rec.ID, ConnectionID: "ask", Stream: "answers",
			OccurredAt: now, Data: json.RawMessage(data)}
	}
	receipt, err := h.Store.Submit(t.Context(), &store.Commit{Lease: lease, End: true, Run: &rec,
		Advance: []store.State{{Stream: "answers", Cursor: json.RawMessage(`{"asked":9}`), CommittedAt: now, RunID: rec.ID}},
		Events: []store.Event{event("run.started", `{}`), event("run.state_advanced", `{"cursor":`+shown+`}`),
			event("run.completed", `{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := receipt.Result(); err != nil {
		t.Fatal(err)
	}
	return rec.ID
}

// A branch of a run whose connection was its own gets one as well.
func TestForkConformance(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	installAs(t, h, conformanceAsk(t), conformance)
	src := over(t, h, startRun(t, s,
		host.StartRun{WorkflowID: "conformance-ask", Inputs: json.RawMessage(`{"ask": []}`)}).ID)
	eventually(t, "its connection is gone", func() bool { return len(connections(t, h)) == 0 })
	rec, err := s.ForkRun(host.As(t.Context(), owner),
		host.ForkRun{Source: src.ID, FromSeq: 0, Start: host.StartRun{Inputs: json.RawMessage(`{"ask": []}`)}})
	if err != nil {
		t.Fatal(err)
	}
	if rec.ConnectionID == src.ConnectionID {
		t.Error("the same connection")
	}
	if got := over(t, h, rec.ID); got.Status != "succeeded" {
		t.Errorf("%s %s", got.Status, got.Result)
	}
}
