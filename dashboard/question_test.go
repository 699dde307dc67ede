package dashboard_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// TestAnswer: the fields are those of the request, values reach the broker typed and
// once, and no page shows one.
func TestAnswer(t *testing.T) {
	s := open(t)
	s.run("run_1", "bank", question("q1", map[string]any{
		"password": map[string]any{"type": "string", "secret": true},
		"user":     map[string]any{"type": "string", "title": "User name"}, "age": map[string]any{"type": "integer"},
	}, "user", "password")...)
	page := s.page("/ui/runs/run_1")
	for _, want := range []string{`type="password" name="f.password" required autocomplete="off"`, `User name`,
		`name="f.user" required`, `type="number" name="f.age"`,
		"used for this run only", `name="interactionId" value="q1"`, "Cancel this question"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	ask := map[string][]string{"interactionId": {"q1"}, "status": {"success"}}
	with := func(more ...string) map[string][]string {
		out := map[string][]string{"interactionId": ask["interactionId"], "status": ask["status"]}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = []string{more[i+1]}
		}
		return out
	}
	for name, fields := range map[string]map[string][]string{
		"f.password": with("f.user", "me"), "f.user": with("f.password", "x"),
		"f.age": with("f.user", "me", "f.password", "x", "f.age", "old"),
	} {
		a := s.post("/ui/runs/run_1/answer", fields)
		if a.status != 400 || !strings.Contains(a.body, `"path":"`+name+`"`) {
			t.Errorf("without a good %s: %d %s", name, a.status, a.body)
		}
	}
	if len(s.host.answers) != 0 {
		t.Fatalf("the broker got %d answers", len(s.host.answers))
	}
	const secret = "s3cr3t-zqx"
	a := s.post("/ui/runs/run_1/answer", with("f.user", "me", "f.password", secret, "f.age", "41", "f.more", "ignored"))
	if a.status != 204 || strings.Contains(a.body, secret) {
		t.Fatalf("answer: %d %s", a.status, a.body)
	}
	got := s.host.answers[0]
	if got.InteractionID != "q1" || got.Status != "success" || string(got.Data["user"]) != `"me"` ||
		string(got.Data["password"]) != `"`+secret+`"` || string(got.Data["age"]) != "41" || len(got.Data) != 3 {
		t.Errorf("the broker got %+v", got)
	}
	if strings.Contains(s.page("/ui/runs/run_1"), secret) || strings.Contains(s.page("/ui/inbox"), secret) {
		t.Error("a page shows what was answered")
	}
	s.post("/ui/runs/run_1/answer",
		map[string][]string{"interactionId": {"q1"}, "status": {"cancelled"}, "f.password": {secret}})
	if last := s.host.answers[1]; last.Status != "cancelled" || len(last.Data) != 0 {
		t.Errorf("a cancel carries %+v", last)
	}
}

// TestLateAnswer: who comes second is told so, whether the log shows it already or
// only the broker knows.
func TestLateAnswer(t *testing.T) {
	s := open(t)
	lease := s.run("run_1", "bank", question("q1", map[string]any{"code": map[string]any{"type": "string"}}, "code")...)
	fields := map[string][]string{"interactionId": {"q1"}, "status": {"success"}, "f.code": {"1"}}
	for _, code := range []string{"conflict", "no_pending_interaction"} {
		s.host.refuse = host.Refuse(code, "closed")
		if a := s.post("/ui/runs/run_1/answer", fields); a.status != 409 ||
			!strings.Contains(a.body, "Nothing of what you entered was used") {
			t.Errorf("%s: %d %s", code, a.status, a.body)
		}
	}
	s.host.refuse = nil
	s.commit(lease, store.Event{Type: "run.assistance_resolved",
		Data: data(map[string]string{"assistance_request_id": "q1", "status": "resolved"})})
	before := len(s.host.answers)
	if a := s.post("/ui/runs/run_1/answer", fields); a.status != 409 || len(s.host.answers) != before {
		t.Errorf("closed in the log: %d, and the broker was asked %d times", a.status, len(s.host.answers)-before)
	}
	if a := s.post("/ui/runs/run_1/answer",
		map[string][]string{"interactionId": {"other"}, "status": {"success"}}); a.status != 404 {
		t.Errorf("a question that never was: %d", a.status)
	}
}

// TestControlsOfStates: what a page offers follows from the axes.
func TestControlsOfStates(t *testing.T) {
	s := open(t)
	requested := func(posture, action, obligation string, more map[string]any) store.Event {
		d := map[string]any{"assistance_request_id": "q", "kind": "x", "progress_posture": posture, "owner_action": action,
			"response_obligation": obligation, "message": "Submit now!", "sensitivity": "non_secret"}
		for k, v := range more {
			d[k] = v
		}
		return store.Event{Type: "run.assistance_requested", InteractionID: "q", Data: data(d)}
	}
	decision := map[string]any{"input_schema": json.RawMessage(
		`{"type":"object","properties":{"action":{"type":"string","enum":["accept","reject"]},"comment":{"type":"string"}},"required":["action"]}`)}
	more := map[string]any{"input_schema": json.RawMessage(
		`{"type":"object","properties":{"action":{"type":"string","enum":["accept","reject","refine","edit-accept"]},"comment":{"type":"string"},"edited":{"type":"string"}},"required":["action"]}`)}
	surface := func(status, reason string) map[string]any { // And nothing more
		return map[string]any{"attachments": []map[string]string{{"kind": "browser_surface", "role": "streaming_companion",
			"ref": "sf_1", "status": status, "reason": reason}}}
	}
	for i, c := range []struct {
		event      store.Event
		has, lacks []string
		inbox      bool
	}{
		{requested("running", "act_elsewhere", "none", nil), []string{"The connector keeps checking"},
			[]string{"Hand over", "Cancel this question", "Accept<"}, true},
		{requested("blocked", "provide_value", "response_required", decision),
			[]string{"waits for your decision", `name="f.action" value="accept"`, `value="reject"`, `name="f.comment"`},
			[]string{"Hand over"}, true},
		{requested("blocked", "operate_attachment", "response_required", nil),
			[]string{"I did this outside Sluice", "Cancel this question"}, []string{"I am done", "Hand over"}, true},
		{requested("blocked", "operate_attachment", "response_required", surface("available", "")),
			[]string{`data-view-open data-run="run_d" data-interaction="q"`, "Open the live view", "I am done",
				"Cancel this question"}, []string{"outside Sluice"}, true},
		{requested("blocked", "operate_attachment", "response_required",
			surface("unavailable", "browser_surface_page_stale")),
			[]string{"none can be shown here (browser surface page stale)", "I did this outside Sluice"},
			[]string{"data-view-open", "Open the live view", "I am done"}, true},
		{requested("blocked", "operate_attachment", "none", surface("available", "")),
			[]string{"data-view-open", "the connector will notice"}, []string{"I am done", "Cancel this question", "/answer"},
			true},
		{requested("blocked", "operate_attachment", "none", surface("unavailable", "x")), nil,
			[]string{"data-view-open data-run", "/answer"}, true},
		{requested("running", "act_elsewhere", "none", surface("available", "")), nil, []string{"data-view-open"}, true},
		{requested("waiting_retry", "none", "none", nil), []string{"tries again by itself"}, []string{"/answer"}, false},
		{requested("running", "none", "none", nil), []string{"A message of the connector"}, []string{"/answer"}, false},
		{requested("blocked", "provide_value", "response_required", more),
			[]string{`<textarea name="f.edited"`, `value="edit-accept"`, `value="refine"`, `name="f.comment"`},
			[]string{"Hand over"}, true},
	} {
		id := store.RunID("run_" + string(rune('a'+i)))
		s.run(id, store.ConnectionID("c"+string(rune('a'+i))),
			store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "x"})}, c.event)
		page := s.page("/ui/runs/" + string(id))
		for _, want := range c.has {
			if !strings.Contains(page, want) {
				t.Errorf("case %d lacks %q", i, want)
			}
		}
		for _, not := range c.lacks {
			if strings.Contains(page, not) {
				t.Errorf("case %d has %q", i, not)
			}
		}
		if in := strings.Contains(s.page("/ui/inbox"), string(id)); in != c.inbox {
			t.Errorf("case %d is in the inbox: %v", i, in)
		}
	}
}

// TestCodeField: a one-time code is typed with digits and taken from a message, in
// sight; a password is neither, also where a code is asked for.
func TestCodeField(t *testing.T) {
	s := open(t)
	field := func(id, kind, name string, spec map[string]any) string {
		t.Helper()
		ask := question("q"+id, map[string]any{name: spec}, name)
		for i := range ask {
			ask[i].Data = []byte(strings.ReplaceAll(string(ask[i].Data), `"kind":"clarification"`, `"kind":"`+kind+`"`))
		}
		s.run(store.RunID("run_"+id), store.ConnectionID("c"+id), ask...)
		return regexp.MustCompile(`<input[^>]* name="f\.` + name + `"[^>]*>`).FindString(s.page("/ui/runs/run_" + id))
	}
	secret := map[string]any{"type": "string", "secret": true}
	code := field("1", "otp", "code", secret)
	for _, want := range []string{`type="text"`, `inputmode="numeric"`, `autocomplete="one-time-code"`} {
		if !strings.Contains(code, want) {
			t.Errorf("a code has no %s: %s", want, code)
		}
	}
	for name, got := range map[string]string{
		"a password of another kind": field("2", "credentials", "code", secret),
		"a password beside a code":   field("3", "otp", "password", secret),
		"one by its format": field("4", "otp", "word",
			map[string]any{"type": "string", "secret": true, "format": "password"}),
	} {
		if !strings.Contains(got, `type="password"`) || !strings.Contains(got, `autocomplete="off"`) ||
			strings.Contains(got, "numeric") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What a decision needs is asked for at its field, and only what it says goes along.
func TestDecisionForm(t *testing.T) {
	s := open(t)
	schema := json.RawMessage(
		`{"type":"object","properties":{"action":{"type":"string","enum":["accept","reject","refine","edit-accept"]},"comment":{"type":"string"},"edited":{"type":"string"}},"required":["action"]}`)
	s.run("run_a", "mail", store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "x"})},
		store.Event{Type: "run.assistance_requested", InteractionID: "q", Data: data(map[string]any{
			"assistance_request_id": "q", "kind": "approval", "progress_posture": "blocked", "owner_action": "provide_value",
			"response_obligation": "response_required", "message": "?", "sensitivity": "non_secret", "input_schema": schema})})
	decide := func(action, comment string) answer {
		return s.post("/ui/runs/run_a/answer",
			map[string][]string{"interactionId": {"q"}, "status": {"success"}, "f.action": {action}, "f.comment": {comment},
				"f.edited": {"Mine"}})
	}
	if a := decide("refine", ""); a.status != 400 || !strings.Contains(a.body, `"path":"f.comment"`) ||
		len(s.host.answers) != 0 {
		t.Errorf("%d %s", a.status, a.body)
	}
	for action, want := range map[string]int{"refine": 2, "edit-accept": 3, "accept": 2} {
		decide(action, "why")
		got := s.host.answers[len(s.host.answers)-1].Data
		if _, edited := got["edited"]; len(got) != want || edited != (action == "edit-accept") ||
			string(got["action"]) != `"`+action+`"` {
			t.Errorf("%s: %s", action, got)
		}
	}
}
