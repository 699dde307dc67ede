package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/dashboard"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// A site is the dashboard over a real store and a scripted host, with a session.
type site struct {
	t       *testing.T
	host    *fake
	store   store.Store
	app     *web.App
	base    string
	cookie  string
	session access.Session
	hub     *stream.Hub
}

func open(t *testing.T) *site {
	t.Helper()
	st, err := badger.OpenMemory(badger.Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	ctx := context.Background()
	many := access.Rates{AddressPerSecond: 1e6, AddressBurst: 1e6, KeyPerSecond: 1e6, KeyBurst: 1e6}
	a, err := access.Open(ctx, access.Options{Store: st, Rates: many})
	if err != nil {
		t.Fatal(err)
	}
	token, err := a.Sessions.NewLogin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, host: &fake{}, store: st}
	if s.session, err = a.Sessions.Login(ctx, token, ""); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hub := stream.New(st, stream.Options{})
	s.hub = hub
	hooks, err := webhook.Open(ctx, webhook.Options{
		Store: st, Secrets: signing{}, AllowLoopback: true,
		Forbidden: func(netip.Addr) string { return "there is no network" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hooks.Close(); err != nil {
			t.Error(err)
		}
	})
	pages, err := dashboard.New(dashboard.Options{Host: s.host, Store: st, Streams: hub,
		Webhooks: hooks, Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	s.app = web.New(web.Options{Access: a, Hosts: []string{l.Addr().String()}, ErrorPage: pages.ErrorPage})
	pages.Register(s.app)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s.base, s.cookie = "http://"+l.Addr().String(), "sluice_"+port+"="+s.session.Cookie
	served := make(chan error, 1)
	go func() { served <- s.app.Serve(l) }()
	t.Cleanup(func() {
		hub.Close()
		s.app.EndStreams(time.Minute)
		if err := errors.Join(s.app.Shutdown(time.Minute), <-served); err != nil {
			t.Error(err)
		}
	})
	return s
}

type answer struct {
	status int
	header http.Header
	body   string
}

var client = &http.Client{
	Transport:     &http.Transport{},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       2 * time.Minute,
}

// send makes a request with some headers and nothing else.
func (s *site) send(method, path, body string, headers ...string) answer {
	s.t.Helper()
	q, err := http.NewRequest(method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(q)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(text)}
}

// get is a request of the owner's browser.
func (s *site) get(path string) answer {
	s.t.Helper()
	return s.send("GET", path, "", "Cookie", s.cookie, "Sec-Fetch-Site", "same-origin")
}

// post is a form that a page posts.
func (s *site) post(path string, fields map[string][]string) answer {
	s.t.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.send("POST", path, string(body), "Cookie", s.cookie, "Sec-Fetch-Site", "same-origin", "Origin", s.base,
		web.HeaderCSRF, s.session.CSRFToken, "Content-Type", "application/json")
}

// page gets one that must be there.
func (s *site) page(path string) string {
	s.t.Helper()
	a := s.get(path)
	if a.status != 200 {
		s.t.Fatalf("%s: %d %s", path, a.status, a.body)
	}
	return a.body
}

// run stores a run with events, which stays active.
func (s *site) run(id store.RunID, connection store.ConnectionID, events ...store.Event) store.Lease {
	s.t.Helper()
	now := time.Now()
	row := store.Run{ID: id, ConnectionID: connection, TraceID: "trc_0123456789abcdef", Status: "active", Phase: "running",
		StartedAt: now, TriggerKind: "manual", Attempt: 1}
	lease, err := s.store.Acquire(s.t.Context(), row, "host", "boot", time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	s.commit(lease, events...)
	return lease
}

func (s *site) commit(lease store.Lease, events ...store.Event) {
	s.t.Helper()
	for i := range events {
		events[i].ID, events[i].OccurredAt = store.EventID("evt_0123456789abcdef"), time.Now()
		events[i].RunID, events[i].ConnectionID, events[i].TraceID = lease.RunID, lease.ConnectionID, lease.TraceID
	}
	receipt, err := s.store.Submit(s.t.Context(), &store.Commit{Lease: lease, Events: events})
	if err == nil {
		_, err = receipt.Result()
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func data(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// question is what the log has of a blocking request for values.
func question(id string, properties map[string]any, required ...string) []store.Event {
	return []store.Event{
		{Type: "run.started", Data: data(map[string]any{"workflowId": "bank"})},
		{Type: "run.assistance_requested", InteractionID: id, Data: data(map[string]any{
			"assistance_request_id": id, "kind": "clarification", "progress_posture": "blocked", "owner_action": "provide_value",
			"response_obligation": "response_required", "sensitivity": "secret", "message": "Who are you?",
			"input_schema": map[string]any{"type": "object", "properties": properties, "required": required},
		})},
	}
}

// A fake is a scripted host. What is not scripted is not called.
type fake struct {
	host.Host

	mu          sync.Mutex    // guards what follows
	hosts       []host.Member // nil: one that has its store to itself
	lost        []host.Member
	elsewhere   *host.Member // has every run; nil for none
	drained     string
	connections []host.Connection
	connectors  []host.Connector
	requested   host.Requested
	inspection  host.Inspection
	entries     []host.AuditEntry
	info        host.Info
	raw         *host.RawAssistance
	untold      error // of RawAssistance
	answers     []host.Answer
	refuse      error
	terms       host.GrantTerms
	bindings    host.Bindings
	schedule    host.ScheduleDefinition
	secret      []byte

	tables       []host.Table
	queries      []host.Query
	result       host.QueryResult
	destinations []host.Destination
	added        host.NewDestination
	assistants   assistants
	folder       host.Folder
	file         store.HeldFile
	listed       string // that was asked for
}

func (f *fake) Folder(_ context.Context, path string) (host.Folder, error) {
	f.listed = path
	if path == "/refused" {
		return host.Folder{}, host.Invalid("at", "directory_refused", "no connector may see this directory")
	}
	return f.folder, nil
}

func (f *fake) Tables(context.Context, []store.ConnectionID) ([]host.Table, error) {
	return f.tables, f.refuse
}
func (f *fake) Query(_ context.Context, q host.Query) (host.QueryResult, error) {
	f.queries = append(f.queries, q)
	return f.result, f.refuse
}
func (f *fake) Destinations(context.Context) ([]host.Destination, error) {
	return f.destinations, f.refuse
}
func (f *fake) AddDestination(_ context.Context, q host.NewDestination) (host.Destination, error) {
	f.added = q
	return host.Destination{}, f.refuse
}

func (f *fake) Connections(context.Context) ([]host.Connection, error) {
	return f.connections, f.refuse
}
func (f *fake) Connection(context.Context, store.ConnectionID) (host.Connection, error) {
	if len(f.connections) == 0 {
		return host.Connection{}, store.ErrNotFound
	}
	return f.connections[0], f.refuse
}
func (f *fake) Requested(context.Context, store.ConnectionID) (host.Requested, error) {
	return f.requested, nil
}
func (f *fake) Connectors(context.Context) ([]host.Connector, error) { return f.connectors, nil }
func (f *fake) Connector(context.Context, string) (host.Connector, error) {
	if len(f.connectors) == 0 {
		return host.Connector{}, store.ErrNotFound
	}
	return f.connectors[0], nil
}
func (f *fake) InspectConnector(context.Context, host.InstallConnector) (host.Inspection, error) {
	return f.inspection, nil
}

// ArtifactSize has a file of three bytes for every artifact but those that are gone, or
// at another host. No page opens one.
func (f *fake) ArtifactSize(_ context.Context, _ store.RunID, artifactType string) (int64, error) {
	switch artifactType {
	case "gone":
		return 0, store.ErrNotFound
	case "away":
		return 0, host.Refuse("conflict", "it is at host host_b").With("url", "https://b.example/ui/runs/x")
	}
	return 3, nil
}
func (f *fake) Info(context.Context) host.Info { return f.info }
func (f *fake) Ready(context.Context) []string { return nil }
func (f *fake) LiveRun(store.RunID) (host.LiveRun, bool) {
	return host.LiveRun{Phase: "running"}, true
}
func (f *fake) LiveRunAt(context.Context, store.RunID) (*host.LiveRun, *host.Member) {
	if f.elsewhere != nil {
		return nil, f.elsewhere
	}
	return &host.LiveRun{Phase: "running"}, nil
}
func (f *fake) Hosts(context.Context) ([]host.Member, error) {
	if f.hosts == nil {
		return []host.Member{{HostID: "host_1", Self: true, Leads: true, Capacity: 8}}, nil
	}
	return f.hosts, nil
}
func (f *fake) LostHosts(context.Context) ([]host.Member, error) { return f.lost, nil }
func (f *fake) DrainHost(_ context.Context, id string, on bool) (host.Member, error) {
	f.drained = id + map[bool]string{true: " on", false: " off"}[on]
	return host.Member{}, f.refuse
}
func (f *fake) ScheduleStatistics(context.Context, store.ConnectionID) (host.Statistics, error) {
	return host.Statistics{}, nil
}
func (f *fake) AuditEntries(context.Context, host.AuditQuery) ([]host.AuditEntry, string, error) {
	return f.entries, "7", nil
}
func (f *fake) AuditCopies(context.Context) ([]host.AuditCopy, error) { return nil, nil }
func (f *fake) Audit(context.Context, string, string, string, map[string]string) error {
	return nil
}
func (f *fake) RawAssistance(context.Context, store.RunID, string) (host.RawAssistance, error) {
	if f.untold != nil {
		return host.RawAssistance{}, f.untold
	}
	if f.raw == nil {
		return host.RawAssistance{}, store.ErrNotFound
	}
	return *f.raw, nil
}
func (f *fake) Answer(_ context.Context, a host.Answer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, v := range a.Data { // Data is the callee's, who wipes it
		a.Data[name] = bytes.Clone(v)
	}
	f.answers = append(f.answers, a)
	return f.refuse
}
func (f *fake) GrantConnection(_ context.Context, _ store.ConnectionID, q host.GrantTerms) (host.Grant, error) {
	f.terms = q
	return host.Grant{}, f.refuse
}
func (f *fake) ApproveBindings(_ context.Context, _ store.ConnectionID, q host.Bindings) (host.Bindings, error) {
	f.bindings = q
	return q, f.refuse
}
func (f *fake) PutSchedule(_ context.Context, _ store.ConnectionID, d host.ScheduleDefinition,
	_ *uint64) (host.Schedule, bool, error) {
	f.schedule = d
	return host.Schedule{}, true, f.refuse
}
func (f *fake) SetSecret(_ context.Context, _ store.ConnectionID, _ string, value []byte) error {
	f.secret = bytes.Clone(value)
	return f.refuse
}

// Files has the one file that was poisoned, or none.
func (f *fake) Files(context.Context, store.FileQuery) (store.FilePage, error) {
	if f.file.Digest == "" {
		return store.FilePage{}, nil
	}
	return store.FilePage{Files: []store.HeldFile{f.file}}, nil
}

func (f *fake) OpenFile(context.Context, store.ConnectionID, store.Digest) (store.FileContent, store.File, error) {
	return picture{bytes.NewReader([]byte("%PDF-1.7"))}, store.File{}, nil
}

type picture struct{ *bytes.Reader }

func (picture) Close() error { return nil }
