package assistant_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/assistant"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// secret stands in everything that no assistant of these tests may see.
const secret = "XYZZY-OUT-OF-SCOPE"

const manifest = `{"protocol_version":"0.1.0","connector_id":"https://example.org/mail","connector_key":"mail","version":"1.0.0","display_name":"Mail",
 "streams":[
 {"name":"messages","semantics":"mutable_state","primary_key":["id"],"consent_time_field":"at","selection":{"resource_field":"folder"},
  "schema":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"folder":{"type":"string"},"subject":{"type":"string"},"salary":{"type":"string"},"at":{"type":"string","format":"date-time"}}}},
 {"name":"private","semantics":"mutable_state","primary_key":["id"],"schema":{"type":"object","properties":{"id":{"type":"string"},"text":{"type":"string"}}}}]}`

// narrow is a grant with every kind of restriction.
const narrow = `{"streams":[{"name":"messages","fields":["id","subject","at"],"resources":["work"],"time_range":{"since":"2026-01-01","until":"2027-01-01"}}]}`

// A world has a store with a connection that is granted in part and one that is not, and a
// gateway.
type world struct {
	*testing.T
	store   store.Store
	gateway *assistant.Gateway
	dir     string
	server  *httptest.Server
	n       int
	hosts   assistant.Hosts // nil: none

	starting func() // is called by each start; nil: nothing
	startErr error  // of each start

	mu     sync.Mutex // guards what follows
	now    time.Time
	called []assistant.Call
	refuse error
	tried  chan struct{} // is told of each refusal; nil: nobody
	starts []host.StartRun
}

// StartRun implements assistant.Starter.
func (w *world) StartRun(_ context.Context, q host.StartRun) (store.Run, error) {
	if w.starting != nil {
		w.starting()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.startErr != nil {
		return store.Run{}, w.startErr
	}
	w.starts = append(w.starts, q)
	return store.Run{ID: "run_1", ConnectionID: store.ConnectionID(q.WorkflowID), Status: "active", StartedAt: w.now}, nil
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func newWorld(t *testing.T) *world {
	w := emptyWorld(t)
	w.collect("mail", "messages",
		`a {"id":"a","folder":"work","subject":"quarterly budget","salary":"`+secret+`","at":"2026-03-01T00:00:00Z"}`,
		`b {"id":"b","folder":"home","subject":"`+secret+` budget","at":"2026-03-02T00:00:00Z"}`,
		`c {"id":"c","folder":"work","subject":"`+secret+` budget","at":"2025-03-02T00:00:00Z"}`,
		`d {"id":"d","folder":"work","subject":"lunch","salary":"`+secret+`","at":"2026-03-03T00:00:00Z"}`,
		secret+` {"id":"`+secret+`","folder":"home","subject":"lunch","at":"2026-03-03T00:00:00Z"}`)
	w.collect("mail", "private", `p {"id":"p","text":"`+secret+` budget"}`)
	w.collect("bank", "messages", `z {"id":"z","folder":"work","subject":"`+secret+` budget","at":"2026-03-01T00:00:00Z"}`)
	return w
}

// emptyWorld has nothing in its store.
func emptyWorld(t *testing.T) *world {
	st, err := badger.Open(t.TempDir(), badger.Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return worldOver(t, st)
}

// worldOver has a gateway to a store that others may have open too.
func worldOver(t *testing.T, st store.Store) *world { return worldOf(t, st, nil) }

// worldOf is worldOver for one of several hosts.
func worldOf(t *testing.T, st store.Store, all assistant.Hosts) *world {
	w := &world{T: t, store: st, hosts: all, dir: filepath.Join(t.TempDir(), "assistants"),
		now: time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)}
	w.must(w.open())
	// Whoever names an assistant here is it: tokens are for host/web.
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		name := r.Header.Get("X-Assistant")
		w.gateway.Serve(rw, r.WithContext(host.As(r.Context(), host.Principal{ID: "assistant:" + name})), name,
			"http://sluice.test")
	}))
	t.Cleanup(func() {
		w.server.Close()
		w.gateway.CloseAssistants()
	})
	return w
}

func (w *world) open() (err error) {
	w.gateway, err = assistant.Open(w.Context(),
		assistant.Options{Store: w.store, Dir: w.dir, Runs: w, Hosts: w.hosts, Now: w.clock, AskFor: time.Minute,
			Called: func(calls []assistant.Call) error {
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.refuse != nil {
					select {
					case w.tried <- struct{}{}:
					default:
					}
					return w.refuse
				}
				w.called = append(w.called, calls...)
				return nil
			}})
	return err
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// collect commits records of one stream, in a run of its own.
func (w *world) collect(c store.ConnectionID, stream store.Stream, data ...string) {
	w.Helper()
	w.collectIn(w.store, c, stream, data...)
}

func (w *world) collectIn(st store.Store, c store.ConnectionID, stream store.Stream, data ...string) {
	w.Helper()
	w.n++
	ctx := w.Context()
	if _, err := st.Connection(ctx, c); errors.Is(err, store.ErrNotFound) {
		w.must(st.PutConnection(ctx,
			store.Connection{ID: c, CreatedAt: time.Unix(1_700_000_000, 0), Manifest: json.RawMessage(manifest)}))
	}
	run := store.Run{ID: store.RunID(fmt.Sprintf("run_%026d", w.n)), ConnectionID: c, Status: "active",
		StartedAt: time.Now()}
	lease, err := st.Acquire(ctx, run, "host", "boot", time.Hour)
	w.must(err)
	b := &store.Batch{Stream: stream}
	for _, d := range data {
		key, text, _ := strings.Cut(d, " ")
		change := store.Change{Key: []byte(key), Data: []byte(text), EmittedAt: time.Now().UnixMicro()}
		if text == "" {
			change.Op = store.Delete
		}
		b.Append(change)
	}
	now := time.Now()
	over := run
	over.Status, over.FinishedAt = "succeeded", &now
	r, err := st.Submit(ctx, &store.Commit{Lease: lease, Batches: []*store.Batch{b}, Run: &over, End: true,
		Events: []store.Event{{ID: store.EventID(fmt.Sprintf("evt_%016d", w.n)), Type: "run.completed", RunID: run.ID,
			ConnectionID: c, OccurredAt: now, Data: json.RawMessage(`{}`)}}})
	w.must(err)
	<-r.Done()
	_, err = r.Result()
	w.must(err)
}

// add makes an assistant with the narrow grant, and lets change it first.
func (w *world) add(name string, change ...func(*host.NewAssistant)) host.Assistant {
	w.Helper()
	q := host.NewAssistant{Name: name,
		AssistantTerms: host.AssistantTerms{Connections: []host.AssistantGrant{{ConnectionID: "mail",
			Scope: json.RawMessage(narrow)}}}}
	for _, f := range change {
		f(&q)
	}
	a, err := w.gateway.AddAssistant(w.Context(), q)
	w.must(err)
	return a
}

type named struct{ name string }

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Assistant", n.name)
	return http.DefaultTransport.RoundTrip(r)
}

// connect is a session of an assistant, over HTTP.
func (w *world) connect(name string) *mcp.ClientSession {
	w.Helper()
	return w.connectAs(mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil), name)
}

func (w *world) connectAs(c *mcp.Client, name string) *mcp.ClientSession {
	w.Helper()
	s, err := c.Connect(w.Context(),
		&mcp.StreamableClientTransport{Endpoint: w.server.URL, HTTPClient: &http.Client{Transport: named{name}},
			DisableStandaloneSSE: true}, nil)
	w.must(err)
	w.Cleanup(func() { _ = s.Close() })
	return s
}

// call is a call of a tool: all of its answer as text, and whether it failed.
func (w *world) call(s *mcp.ClientSession, tool string, arguments any) (string, bool) {
	w.Helper()
	r, err := s.CallTool(w.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err.Error(), false
	}
	b, err := json.Marshal(r)
	w.must(err)
	return string(b), !r.IsError
}

// structured is the structured part of an answer that succeeds.
func (w *world) structured(s *mcp.ClientSession, tool string, arguments, into any) {
	w.Helper()
	r, err := s.CallTool(w.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	w.must(err)
	b, err := json.Marshal(r.StructuredContent)
	w.must(err)
	if r.IsError {
		t, _ := json.Marshal(r.Content)
		w.Fatalf("%s %v: %s", tool, arguments, t)
	}
	w.must(json.Unmarshal(b, into))
}

type object = map[string]any
