package assistant_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
)

// A token is shown once, opens one gateway, and only its hash is kept.
func TestTokens(t *testing.T) {
	w := newWorld(t)
	a := w.add("notes")
	if name, err := w.gateway.AuthenticateAssistant(t.Context(), a.Token); err != nil || name != "notes" {
		t.Fatal(name, err)
	}
	d, err := w.store.Document(t.Context(), store.Assistants, "notes")
	w.must(err)
	if _, hidden, _ := strings.Cut(a.Token[4:], "_"); strings.Contains(string(d.Data), hidden) {
		t.Error("the token is stored")
	}
	all, err := w.gateway.Assistants(t.Context())
	w.must(err)
	if len(all) != 1 || all[0].Token != "" {
		t.Errorf("%+v", all)
	}
	for _, wrong := range []string{"", "sla_", "sla__", a.Token + "x", a.Token[:len(a.Token)-1],
		strings.Replace(a.Token, "sla", "slk", 1), strings.Repeat("a", 1000), "sla_" + strings.Repeat("_", 100)} {
		if name, err := w.gateway.AuthenticateAssistant(t.Context(), wrong); !errors.Is(err, access.ErrUnauthenticated) {
			t.Errorf("%q: %q, %v", wrong, name, err)
		}
	}
	var no *host.Refusal
	if _, err := w.gateway.AddAssistant(t.Context(),
		host.NewAssistant{Name: "notes", AssistantTerms: a.AssistantTerms}); !errors.As(err, &no) || no.Code != "conflict" {
		t.Error(err)
	}
	_, err = w.gateway.RevokeAssistant(t.Context(), "notes")
	w.must(err)
	if _, err := w.gateway.AuthenticateAssistant(t.Context(), a.Token); !errors.Is(err, access.ErrKeyRevoked) {
		t.Error(err)
	}
	again := w.add("notes") // the name may be given again, with another token
	if _, err := w.gateway.AuthenticateAssistant(t.Context(), a.Token); !errors.Is(err, access.ErrUnauthenticated) {
		t.Error(err)
	}
	w.gateway.CloseAssistants()
	w.must(w.open())
	if name, err := w.gateway.AuthenticateAssistant(t.Context(), again.Token); err != nil || name != "notes" {
		t.Error(name, err)
	}
}

// Grants that mean nothing, or something else than was meant, are refused by name.
func TestRefusedGrants(t *testing.T) {
	w := newWorld(t)
	past := w.clock().Add(-time.Second)
	of := func(scope string) []host.AssistantGrant {
		return []host.AssistantGrant{{ConnectionID: "mail", Scope: json.RawMessage(scope)}}
	}
	for want, q := range map[string]host.NewAssistant{
		"name:":        {Name: "No Slug", AssistantTerms: host.AssistantTerms{Connections: of(`null`)}},
		"connections:": {Name: "a"},
		"connections[0].connectionId:": {Name: "a",
			AssistantTerms: host.AssistantTerms{Connections: []host.AssistantGrant{{ConnectionID: "nowhere"}}}},
		"connections[1].connectionId:": {Name: "a",
			AssistantTerms: host.AssistantTerms{Connections: append(of(`null`), of(`null`)...)}},
		"expiresAt:": {Name: "a", AssistantTerms: host.AssistantTerms{Connections: of(`null`), ExpiresAt: &past}},
		"did you mean subject?": {Name: "a",
			AssistantTerms: host.AssistantTerms{Connections: of(`{"streams":[{"name":"messages","fields":["subjct"]}]}`)}},
		"did you mean messages?": {Name: "a",
			AssistantTerms: host.AssistantTerms{Connections: of(`{"streams":[{"name":"mesages"}]}`)}},
		"no time range": {Name: "a",
			AssistantTerms: host.AssistantTerms{Connections: of(
				`{"streams":[{"name":"private","time_range":{"since":"2026"}}]}`)}},
		"at least one stream": {Name: "a", AssistantTerms: host.AssistantTerms{Connections: of(`{"streams":[]}`)}},
	} {
		var no *host.Refusal
		if _, err := w.gateway.AddAssistant(t.Context(), q); !errors.As(err, &no) || !strings.Contains(no.Message, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Each call is written down, and none is answered that cannot be.
func TestWrittenDown(t *testing.T) {
	w := newWorld(t)
	w.add("notes")
	s := w.connect("notes")
	w.call(s, "list_records", object{"connection": "mail", "stream": "messages"})
	w.call(s, "query", object{"sql": "DELETE FROM mail.messages"})
	calls, err := w.gateway.AssistantCalls(t.Context(), "notes", 0, 10)
	w.must(err)
	if len(calls) != 2 || calls[0].Tool != "query" || calls[0].Outcome != "refused" || calls[0].Code != "query_denied" ||
		calls[0].Number != 2 ||
		calls[1].Rows != 2 || calls[1].Bytes == 0 || calls[1].Outcome != "done" ||
		!strings.Contains(calls[1].Arguments, "messages") || calls[1].Client != "test 1" {
		t.Errorf("%+v", calls)
	}
	older, err := w.gateway.AssistantCalls(t.Context(), "notes", 2, 10)
	w.must(err)
	if len(older) != 1 || older[0].Number != 1 {
		t.Errorf("%+v", older)
	}
	a, err := w.gateway.Assistant(t.Context(), "notes")
	w.must(err)
	if a.Calls != 2 || a.LastUsedAt == nil {
		t.Errorf("%+v", a)
	}
	w.mu.Lock()
	if len(w.called) != 2 || w.called[0].Assistant != "notes" {
		t.Errorf("%+v", w.called)
	}
	w.refuse = errors.New("the disk is full")
	w.mu.Unlock()
	w.call(s, "runs", object{})
	if _, err := w.gateway.AssistantCalls(t.Context(), "notes", 0, 10); err == nil {
		t.Error("nobody says that calls are not written down")
	}
	if text, ok := w.call(s, "runs", object{}); ok || !strings.Contains(text, "cannot be written down") {
		t.Error(text)
	}
	w.mu.Lock()
	w.refuse = nil
	w.mu.Unlock()
	w.eventually("calls are written again", func() bool {
		calls, err := w.gateway.AssistantCalls(t.Context(), "notes", 0, 10)
		return err == nil && len(calls) == 4
	})
	if text, ok := w.call(s, "runs", object{}); !ok {
		t.Error(text)
	}
}

func (w *world) eventually(what string, f func() bool) {
	w.Helper()
	for end := time.Now().Add(5 * time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("never: %s", what)
		}
	}
}

// A call with a yes wanted waits for it; a no, and an end, are no.
func TestAsk(t *testing.T) {
	w := newWorld(t)
	w.add("notes", func(q *host.NewAssistant) { q.Ask = true })
	s := w.connect("notes")
	ask := func(decide func(call string)) (string, bool) {
		t.Helper()
		type said struct {
			text string
			ok   bool
		}
		out := make(chan said, 1)
		go func() {
			text, ok := w.call(s, "get_record", object{"connection": "mail", "stream": "messages", "key": "a"})
			out <- said{text, ok}
		}()
		var call string
		w.eventually("the call waits", func() bool {
			calls, err := w.gateway.AssistantCalls(t.Context(), "notes", 0, 1)
			if err != nil || len(calls) == 0 || calls[0].Outcome != "waiting" {
				return false
			}
			call = calls[0].CallID
			return true
		})
		decide(call)
		r := <-out
		return r.text, r.ok
	}
	if text, ok := ask(func(call string) { w.must(w.gateway.DecideCall(t.Context(), "notes", call, true)) }); !ok ||
		!strings.Contains(text, "quarterly") {
		t.Error(text)
	}
	if text, ok := ask(func(call string) { w.must(w.gateway.DecideCall(t.Context(), "notes", call, false)) }); ok ||
		!strings.Contains(text, "said no") {
		t.Error(text)
	}
	if err := w.gateway.DecideCall(t.Context(), "notes", "call_none", true); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if text, ok := ask(func(string) { _, err := w.gateway.RevokeAssistant(t.Context(), "notes"); w.must(err) }); ok {
		t.Error(text)
	}
}

// Those that may run connections run those that they see; a client that opens pages for its
// user is led to the one where something waits.
func TestMayRun(t *testing.T) {
	w := newWorld(t)
	w.add("notes", func(q *host.NewAssistant) { q.Run = true })
	s := w.connect("notes")
	if text, ok := w.call(s, "run_connection", object{"connection": "mail"}); !ok || len(w.starts) != 1 ||
		w.starts[0].WorkflowID != "mail" {
		t.Error(text)
	}
	if text, ok := w.call(s, "run_connection", object{"connection": "bank"}); ok || len(w.starts) != 1 {
		t.Error(text)
	}
	run := store.Run{ID: "run_99999999999999999999999999", ConnectionID: "mail", Status: "active", StartedAt: time.Now()}
	lease, err := w.store.Acquire(t.Context(), run, "host", "boot", time.Hour)
	w.must(err)
	r, err := w.store.Submit(t.Context(),
		&store.Commit{Lease: lease, Run: &run,
			Ask: &store.Interaction{ID: "int_1", RunID: run.ID, Kind: "otp", Message: secret, OpenedAt: time.Now()},
			Events: []store.Event{{ID: "evt_asked", Type: "interaction.opened", RunID: run.ID, ConnectionID: "mail",
				OccurredAt: time.Now(), Data: json.RawMessage(`{}`)}}})
	w.must(err)
	<-r.Done()
	text, ok := w.call(s, "waiting", object{})
	if !ok || !strings.Contains(text, "http://sluice.test/ui/runs/run_9999") || strings.Contains(text, secret) {
		t.Error(text)
	}
	led := ""
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			led = r.Params.URL
			return &mcp.ElicitResult{Action: "accept"}, nil
		}})
	leads := w.connectAs(c, "notes")
	if text, ok := w.call(leads, "waiting", object{}); !ok ||
		!strings.HasPrefix(led, "http://sluice.test/ui/runs/run_9999") {
		t.Error(led, text)
	}
}

// Errors advise what an assistant can do itself, or say that it is the owner's.
func TestAdvice(t *testing.T) {
	w := newWorld(t)
	w.add("notes", func(q *host.NewAssistant) { q.Run = true })
	s := w.connect("notes")
	refused := func(tool string, arguments object, want string) {
		t.Helper()
		text, ok := w.call(s, tool, arguments)
		if theirs := strings.Contains(text, "sluice "); ok || !strings.Contains(text, want) ||
			theirs && !strings.Contains(text, "Only the owner can do that") {
			t.Errorf("%s: %s", tool, text)
		}
	}
	for _, sql := range []string{"SELECT * FROM messages", "SELECT * FROM nowhere.messages", "SELECT * FROM mail.letters",
		"SELECT * FROM bank.messages"} {
		refused("query", object{"sql": sql}, "the tool data lists them")
	}
	w.startErr = host.Refuse("grant_expired", "the grant of connection mail is expired; sluice grant mail gives a new one")
	refused("run_connection", object{"connection": "mail"}, "Only the owner can do that")
	w.startErr = host.Refuse("store_no_space", "there is not enough free disk space")
	refused("run_connection", object{"connection": "mail"}, "Only the owner can do that")
}

// A cursor opens no more than the grant that is there when it comes back.
func TestCursorAfterTheGrantChanged(t *testing.T) {
	w := emptyWorld(t)
	for i := range 10 {
		w.collect("mail", "messages", fmt.Sprintf(`k%d {"id":"k%d","folder":"work","subject":"s%d","salary":"9","at":"2026-03-01T00:00:00Z"}`, i, i, i))
	}
	type page struct {
		Records []struct{ Key string }
		Cursor  string
	}
	begin := func(t *testing.T, tool string, change ...func(*host.NewAssistant)) (*mcp.ClientSession, object) {
		t.Helper()
		w.add(tool, change...)
		s, ask := w.connect(tool), object{"connection": "mail", "stream": "messages", "limit": 2}
		var p page
		w.structured(s, tool, ask, &p)
		if ask["cursor"] = p.Cursor; len(p.Records) != 2 || p.Cursor == "" {
			t.Fatalf("%+v", p)
		}
		return s, ask
	}
	end := func(tool string) { _, err := w.gateway.RevokeAssistant(w.Context(), tool); w.must(err) }
	change := func(from, to string) {
		_, err := w.store.ChangeConnection(t.Context(), "mail", func(c *store.Connection) error {
			c.Manifest = json.RawMessage(strings.ReplaceAll(string(c.Manifest), from, to))
			return nil
		})
		w.must(err)
	}
	for _, tool := range []string{"list_records", "changes_since"} {
		t.Run(tool, func(t *testing.T) {
			ends := w.clock().Add(time.Hour)
			s, ask := begin(t, tool, func(q *host.NewAssistant) { q.ExpiresAt = &ends })
			w.mu.Lock()
			w.now = ends
			w.mu.Unlock()
			if text, ok := w.call(s, tool, ask); ok || !strings.Contains(text, "expired") {
				t.Errorf("of one that expired: %s", text)
			}
			s, ask = begin(t, tool)
			end(tool)
			w.add(tool, func(q *host.NewAssistant) { // another one, that sees less
				q.Connections[0].Scope = json.RawMessage(`{"streams":[{"name":"messages","fields":["id"],"resources":["home"]}]}`)
			})
			if text, ok := w.call(w.connect(tool), tool, ask); ok || !strings.Contains(text, "cursor") {
				t.Errorf("of one before by its name: %s", text)
			}
			if text, ok := w.call(s, tool, ask); ok || !strings.Contains(text, "cursor") {
				t.Errorf("in the session of the one before: %s", text)
			}
			end(tool)
			s, ask = begin(t, tool)
			change(`"resource_field":"folder"`, `"resource_field":"subject"`) // none of the records is of the resource work now
			if text, ok := w.call(s, tool, ask); strings.Contains(text, "subject") {
				t.Errorf("of a stream whose resources changed: %v %s", ok, text)
			}
			change(`"resource_field":"subject"`, `"resource_field":"folder"`)
			var p page
			w.structured(s, tool, ask, &p)
			if len(p.Records) != 2 {
				t.Errorf("after they changed back: %+v", p)
			}
			end(tool)
		})
	}
}

// Schemas are resources, of what is seen.
func TestSchemas(t *testing.T) {
	w := newWorld(t)
	w.add("notes")
	s := w.connect("notes")
	all, err := s.ListResources(t.Context(), nil)
	w.must(err)
	if len(all.Resources) != 1 || all.Resources[0].URI != "sluice://schemas/mail/messages" {
		t.Errorf("%+v", all.Resources)
	}
	r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "sluice://schemas/mail/messages"})
	w.must(err)
	if text := r.Contents[0].Text; !strings.Contains(text, "subject") || strings.Contains(text, "salary") {
		t.Error(text)
	}
}

// A host ends also where its disk refuses to the last.
func TestCloseOnAFullDisk(t *testing.T) {
	w := newWorld(t)
	w.add("notes")
	tried := make(chan struct{}, 1000)
	w.mu.Lock()
	w.refuse, w.tried = errors.New("the disk is full"), tried
	w.mu.Unlock()
	s := w.connect("notes")
	w.call(s, "data", object{})
	<-tried
	closed := make(chan struct{})
	go func() { w.gateway.CloseAssistants(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

// What an assistant could see that expired goes when its name is given again.
func TestGivenAgain(t *testing.T) {
	w := newWorld(t)
	ends := w.clock().Add(time.Hour)
	w.add("notes", func(q *host.NewAssistant) { q.ExpiresAt = &ends })
	if _, ok := w.call(w.connect("notes"), "data", object{}); !ok {
		t.Fatal("no data")
	}
	copies := func() []string {
		found, err := filepath.Glob(filepath.Join(w.dir, "*"))
		w.must(err)
		return found
	}
	if len(copies()) != 1 {
		t.Fatal(copies())
	}
	w.mu.Lock()
	w.now = ends
	w.mu.Unlock()
	w.add("notes")
	if left := copies(); len(left) != 0 {
		t.Errorf("left are %s", left)
	}
}
