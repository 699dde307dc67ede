package dashboard_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// assistants are what a fake has of them.
type assistants struct {
	all     []host.Assistant
	calls   []host.AssistantCall
	added   host.NewAssistant
	decided []string
}

func (f *fake) Assistants(context.Context) ([]host.Assistant, error) {
	return f.assistants.all, f.refuse
}
func (f *fake) Assistant(context.Context, string) (host.Assistant, error) {
	if len(f.assistants.all) == 0 {
		return host.Assistant{}, store.ErrNotFound
	}
	return f.assistants.all[0], f.refuse
}
func (f *fake) AddAssistant(_ context.Context, q host.NewAssistant) (host.Assistant, error) {
	f.assistants.added = q
	return host.Assistant{Name: q.Name, Token: "sla_1_secret"}, f.refuse
}
func (f *fake) RevokeAssistant(_ context.Context, name string) (host.Assistant, error) {
	f.assistants.decided = append(f.assistants.decided, "revoke "+name)
	return host.Assistant{}, f.refuse
}
func (f *fake) AssistantCalls(context.Context, string, uint64, int) ([]host.AssistantCall, error) {
	return f.assistants.calls, f.refuse
}
func (f *fake) DecideCall(_ context.Context, name, call string, yes bool) error {
	f.assistants.decided = append(f.assistants.decided, map[bool]string{true: "yes ", false: "no "}[yes]+name+" "+call)
	return f.refuse
}

// An assistant is asked for as the form has it; its token is shown in that answer, with
// what to paste, and on no page.
func TestAssistantForm(t *testing.T) {
	s := open(t)
	a := s.post("/ui/assistants",
		map[string][]string{"name": {"notes"}, "connections": {"mail"}, "streams": {"messages"}, "fields": {"subject, at"},
			"since": {"2026-01-01"}, "ask": {"true"}})
	if a.status != 200 || strings.Count(a.body, "sla_1_secret") != 2 || !strings.Contains(a.body, "/mcp") {
		t.Errorf("%d %s", a.status, a.body)
	}
	q := s.host.assistants.added
	if q.Name != "notes" || !q.Ask || q.Run || len(q.Connections) != 1 ||
		string(q.Connections[0].Scope) != `{"streams":[{"fields":["subject","at"],"name":"messages","time_range":{"since":"2026-01-01"}}]}` {
		t.Errorf("asked for %+v", q)
	}
	for _, wrong := range []map[string][]string{
		{"name": {"x"}},
		{"name": {"x"}, "connections": {"mail"}, "fields": {"subject"}},
		{"name": {"x"}, "connections": {"mail", "bank"}, "streams": {"messages"}},
	} {
		if a := s.post("/ui/assistants", wrong); a.status != 400 {
			t.Errorf("%v: %d %s", wrong, a.status, a.body)
		}
	}
}

// Calls are shown, and those that wait have buttons.
func TestAssistantCalls(t *testing.T) {
	s := open(t)
	s.host.assistants.all = []host.Assistant{{Name: "notes", Status: "active", Waiting: 1,
		AssistantTerms: host.AssistantTerms{Connections: []host.AssistantGrant{{ConnectionID: "mail"}}}}}
	s.host.assistants.calls = []host.AssistantCall{
		{CallID: "call_2", Tool: "query", Outcome: "waiting", Arguments: `{"sql":"SELECT '<b>'"}`,
			At: time.Unix(1_700_000_000, 0)},
		{CallID: "call_1", Tool: "data", Outcome: "done", Rows: 7, At: time.Unix(1_700_000_000, 0)},
	}
	if page := s.page("/ui/assistants"); !strings.Contains(page, "1 waiting") ||
		!strings.Contains(page, "/ui/assistants/notes") {
		t.Error(page)
	}
	page := s.page("/ui/assistants/notes")
	if strings.Count(page, "Allow") != 2 || !strings.Contains(page, "&lt;b&gt;") ||
		!strings.Contains(page, "calls/call_2/approve") || strings.Contains(page, "call_1/approve") {
		t.Error(page)
	}
	s.post("/ui/assistants/notes/calls/call_2/approve", map[string][]string{})
	s.post("/ui/assistants/notes/calls/call_2/deny", map[string][]string{})
	s.post("/ui/assistants/notes/revoke", map[string][]string{})
	if got := strings.Join(s.host.assistants.decided, ", "); got != "yes notes call_2, no notes call_2, revoke notes" {
		t.Error(got)
	}
	if a := s.get("/ui/assistants/No%20Slug"); a.status != 404 {
		t.Error(a.status)
	}
}
