package app_test

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// A workflow is a connection's id, else a connector's name with one enabled connection.
func TestWorkflow(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	c := installAs(t, h, published(t, "mailbox", "1", "Mailbox").wasm(), nil)
	start := func(id string) (store.Run, string, map[string]any) {
		rec, err := s.StartRun(host.As(t.Context(), owner), host.StartRun{WorkflowID: id})
		code, details := refusalCode(err)
		return rec, code, details
	}
	if _, code, details := start("mailbox"); code != "connection_not_ready" || details["code"] != "connection_not_found" {
		t.Errorf("without a connection: %s %v", code, details)
	}
	for _, unknown := range []string{"nobody", "", "../x", strings.Repeat("x", 1000)} {
		_, err := s.StartRun(host.As(t.Context(), owner), host.StartRun{WorkflowID: unknown})
		if code, _ := refusalCode(err); code != "validation_error" ||
			unknown != "" && strings.Contains(err.Error(), unknown) {
			t.Errorf("unknown: %v", err)
		}
	}
	connect(t, h, c, "home", "{}")
	for _, id := range []string{"home", "mailbox"} {
		rec, code, _ := start(id)
		if code != "" {
			t.Fatal(code)
		}
		if rec.ConnectionID != "home" || rec.Request.WorkflowID != id || rec.Request.By != "owner" ||
			rec.Request.Transport != "ui" || rec.TriggerKind != "manual" {
			t.Errorf("%+v", rec)
		}
		over(t, h, rec.ID)
	}
	connect(t, h, c, "work", "{}")
	if _, code, details := start("mailbox"); code != "ambiguous_connection" ||
		len(details["connectionIds"].([]string)) != 2 {
		t.Errorf("two connections: %s %v", code, details)
	}
	if _, err := h.Store.ChangeConnection(t.Context(), "work",
		func(c *store.Connection) error { c.Enabled = false; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, code, _ := start("work"); code != "connection_disabled" {
		t.Error(code)
	}
	rec, code, _ := start("mailbox")
	if code != "" || rec.ConnectionID != "home" {
		t.Errorf("%s %+v", code, rec)
	}
	over(t, h, rec.ID)
	if _, err := h.Store.ChangeConnection(t.Context(), "home", func(c *store.Connection) error {
		c.Grant = &store.Grant{AccessMode: "continuous", Status: "revoked"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, code, _ := start("home"); code != "grant_revoked" {
		t.Error(code)
	}
}

// Budgets only lower, and none is switched off.
func TestBudgets(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	for _, ms := range []int64{0, -1} {
		_, err := s.StartRun(host.As(t.Context(), owner),
			host.StartRun{WorkflowID: "any", Budgets: map[string]int64{"total_ms": ms}})
		if code, details := refusalCode(err); code != "invalid_request" || details["field"] != "budgets" {
			t.Errorf("%d ms: %v", ms, err)
		}
	}
	connect(t, h, installAs(t, h, askModule(t), nil), "ask", oneCode)
	rec := startRun(t, s, host.StartRun{WorkflowID: "ask",
		Budgets: map[string]int64{"total_ms": 400, "active_ms": 1 << 60}})
	if got := over(t, h, rec.ID); got.Status != "failed" || !strings.Contains(string(got.Result), `"deadline":"total"`) {
		t.Errorf("%s %s", got.Status, got.Result)
	}
}

// A question of a real guest is answered at the broker; the answer is in no event.
func TestAnswered(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	connect(t, h, installAs(t, h, askModule(t), nil), "ask", oneCode)
	with := false
	rec := startRun(t, s, host.StartRun{WorkflowID: "ask", With: func(r store.Run) []store.Write {
		with = r.ConnectionID == "ask"
		return []store.Write{{Kind: "test", ID: string(r.ID), Data: json.RawMessage(`{}`)}}
	}})
	if _, err := h.Store.Document(t.Context(), "test", string(rec.ID)); err != nil || !with {
		t.Errorf("what goes with the run: %v %v", with, err)
	}
	if _, err := s.StartRun(host.As(t.Context(), owner), host.StartRun{WorkflowID: "ask"}); true {
		code, details := refusalCode(err)
		if code != "run_already_active" || details["activeRunId"] != string(rec.ID) || details["activeHost"] != "cloud" ||
			details["retryAfter"].(int) < 1 {
			t.Errorf("%s %v", code, details)
		}
	}
	q := parked(t, h, rec.ID)
	if live, ok := s.LiveRun(rec.ID); !ok || live.Phase != "waiting" {
		t.Errorf("live: %+v", live)
	}
	eventually(t, "the wait for the owner is counted", func() bool {
		live, _ := s.LiveRun(rec.ID)
		return live.Usage.OwnerWait > 0
	})
	raw, err := s.RawAssistance(t.Context(), rec.ID, q.ID)
	if err != nil || !strings.Contains(raw.Message, "https://help.example/?t=1") || raw.Attachments == nil {
		t.Errorf("%+v %v", raw, err)
	}
	answer := func(data string) error {
		a := host.Answer{RunID: rec.ID, InteractionID: q.ID, Status: "success", Data: map[string]json.RawMessage{}}
		if data != "" {
			a.Data["code"] = json.RawMessage(data)
		}
		return s.Answer(host.As(t.Context(), host.Principal{ID: "key:k1", Transport: "rest"}), a)
	}
	if code, details := refusalCode(answer("")); code != "invalid_request" || details["field"] != "code" {
		t.Errorf("without a code: %s", code)
	}
	if err := answer(`"914207"`); err != nil {
		t.Fatal(err)
	}
	if got := over(t, h, rec.ID); got.Status != "succeeded" {
		t.Errorf("%s %s", got.Status, got.Result)
	}
	if code, details := refusalCode(answer(`"1"`)); code != "no_pending_interaction" || details["outcome"] != "answered" {
		t.Errorf("the run is over: %s %v", code, details)
	}
	if _, err := s.RawAssistance(t.Context(), rec.ID, q.ID); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if by := timeline(t, h, rec.ID, "interrupt.resolved"); len(by) != 1 || by[0]["resolvedBy"] != "key:k1" {
		t.Errorf("resolved: %v", by)
	}
	events, err := h.Store.Events(t.Context(), rec.ID, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if strings.Contains(string(e.Data), "914207") {
			t.Errorf("the answer is in %s: %s", e.Type, e.Data)
		}
	}
	if n := s.OpenQuestions(); n != 0 {
		t.Errorf("%d questions are open", n)
	}
	wroteDown(t, s, "interaction.answered", "key:k1", string(rec.ID)+"/"+q.ID, 1)
}

// A run that waits for its owner is paused, answered, resumed and cancelled.
func TestSteered(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	connect(t, h, installAs(t, h, askModule(t), nil), "ask", oneCode)
	rec := startRun(t, s, host.StartRun{WorkflowID: "ask"})
	parked(t, h, rec.ID)
	if _, err := s.PauseRun(host.As(t.Context(), owner), rec.ID, "immediate", "tea"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "paused", func() bool { live, _ := s.LiveRun(rec.ID); return live.Paused })
	_, err := s.ForkRun(host.As(t.Context(), owner), host.ForkRun{Source: rec.ID})
	if code, details := refusalCode(err); code != "conflict" || details["runStatus"] != "paused" {
		t.Errorf("fork of an active run: %v", err)
	}
	if _, err := s.ResumeRun(host.As(t.Context(), owner), rec.ID, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CancelRun(host.As(t.Context(), owner), rec.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if got := over(t, h, rec.ID); got.Status != "cancelled" {
		t.Errorf("%s", got.Status)
	}
	eventually(t, "cancelled", func() bool {
		status, err := s.CancelRun(host.As(t.Context(), owner), rec.ID, "")
		return err == nil && status == "cancelled"
	})
	wroteDown(t, s, "run.steered", "owner", string(rec.ID), 3) // and not once more for those that changed nothing
	if _, err := s.CancelRun(host.As(t.Context(), owner), "run_none", ""); err == nil {
		t.Error("cancelled a run that there is not")
	}
	for _, e := range timeline(t, h, rec.ID, "run.cancel_requested") {
		if e["requested_by"] != "owner" || e["reason"] != "enough" {
			t.Errorf("%v", e)
		}
	}
}

// A run that waits for its owner, for days perhaps, does not keep its module in
// memory.
func TestParkedMemory(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	wasm := conformanceAsk(t)
	installAs(t, h, wasm, conformance)
	park := func() {
		parked(t, h, startRun(t, s, host.StartRun{WorkflowID: "conformance-ask", Inputs: json.RawMessage(oneCode)}).ID)
	}
	park() // what is made once
	const runs = 4
	before := heap()
	for range runs {
		park()
	}
	perRun := (heap() - before) / runs
	t.Logf("a parked run costs %d KiB of the host's heap, its module has %d KiB", perRun>>10, len(wasm)>>10)
	if perRun > int64(len(wasm))/2 {
		t.Errorf("a parked run costs %d bytes", perRun)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// wroteDown checks how often the audit log has an action, by whom and at what.
func wroteDown(t *testing.T, s *app.Service, action, actor, target string, times int) {
	t.Helper()
	page, _, err := s.AuditEntries(t.Context(), host.AuditQuery{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range page {
		if e.Action == action && e.Actor == actor && e.Target == target {
			n++
		}
	}
	if n != times {
		t.Errorf("%s of %s by %s is written down %d times in %+v", action, target, actor, n, page)
	}
}
