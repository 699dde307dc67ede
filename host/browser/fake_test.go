package browser_test

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/egress"
)

// A fake is a browser that does what it is told and nothing else.
type fake struct {
	page.Browser
	lost   chan struct{}
	health chan struct{}

	mu      sync.Mutex
	fault   error
	pageErr error
	tabs    []string
	cookies []*http.Cookie
	closed  int
	dialogs []page.DialogPolicy
	facts   page.Facts // of every tab; no host is a.example
	nodes   []page.Node
	covered []page.Ref // in pictures
	dialog  *page.Dialog
	kind    fleet.Kind
	title   func(context.Context) (string, error)
}

func (f *fake) Product() (string, int)          { return "Fake", 7 }
func (f *fake) Agent() string                   { return "Fake/7" }
func (f *fake) Lost() <-chan struct{}           { return f.lost }
func (f *fake) Health() <-chan struct{}         { return f.health }
func (f *fake) Ping(context.Context) error      { return nil }
func (f *fake) Screen() page.Screen             { return fakeScreen{f: f} }
func (f *fake) Interrupt(context.Context) error { return nil }

func (f *fake) PingPage(ctx context.Context) error {
	f.mu.Lock()
	err := f.pageErr
	f.mu.Unlock()
	if err == page.ErrHung {
		<-ctx.Done()
	}
	return err
}

func (f *fake) Fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.lost:
		return page.ErrLost
	default:
		return f.fault
	}
}

func (f *fake) Tabs() (out []page.Tab) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range f.tabs {
		out = append(out, fakeTab{f: f, id: id})
	}
	return out
}

func (f *fake) Activate(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, t := range f.tabs {
		if t == id {
			f.tabs[0], f.tabs[i] = f.tabs[i], f.tabs[0]
		}
	}
	return nil
}

func (f *fake) Cookies(context.Context, []string) ([]*http.Cookie, error) { return f.cookies, nil }

func (f *fake) Close(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	select {
	case <-f.lost:
	default:
		close(f.lost)
	}
	return nil
}

func (f *fake) kill() { _ = f.Close(context.Background()) }

type fakeTab struct {
	page.Tab
	f  *fake
	id string
}

func (t fakeTab) ID() string { return t.id }

func (t fakeTab) Facts() page.Facts {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	f := t.f.facts
	f.Host = cmp.Or(f.Host, "a.example")
	return f
}

func (t fakeTab) Read(context.Context, page.Query) (*page.Observation, error) {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	return &page.Observation{Nodes: slices.Clone(t.f.nodes)}, nil
}

func (t fakeTab) Screenshot(_ context.Context, s page.Shot) (page.Picture, error) {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	t.f.covered = append(t.f.covered, s.Cover...)
	return page.Picture{MIME: "image/jpeg", Data: []byte("JPEG")}, nil
}

func (t fakeTab) Close(context.Context) error {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	for i, id := range t.f.tabs {
		if id == t.id {
			t.f.tabs = append(t.f.tabs[:i:i], t.f.tabs[i+1:]...)
		}
	}
	return nil
}

type fakeScreen struct {
	page.Screen
	f *fake
}

func (s fakeScreen) Viewport() page.Viewport { return page.Viewport{Width: 1280, Height: 720} }
func (s fakeScreen) Facts() page.Facts {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return page.Facts{Dialog: s.f.dialog, Host: "a.example"}
}

func (s fakeScreen) Title(ctx context.Context) (string, error) { return s.f.title(ctx) }

func (s fakeScreen) Answer(context.Context, bool, string) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.dialog = nil
	return nil
}

func (s fakeScreen) OnDialog(p page.DialogPolicy) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.dialogs = append(s.f.dialogs, p)
}

type fakeGate struct {
	lost chan struct{}

	mu  sync.Mutex
	got []chromium.GateBinding
}

func (g *fakeGate) Lost() <-chan struct{} { return g.lost }
func (g *fakeGate) Unbind()               {}
func (g *fakeGate) Close() error          { return nil }
func (g *fakeGate) Bind(b chromium.GateBinding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.got = append(g.got, b)
}

// A log is a run that writes down what it is told.
type log struct {
	mu     sync.Mutex
	events []event
	lost   []binding.Probe
	shown  []abi.Attachment
	ends   []binding.Failure
	used   []string
	told   []string
	ask    func(ctx context.Context, message string, timeout time.Duration) (string, string, error)
}

type event struct {
	typ, status string
	data        map[string]any
}

func (l *log) Event(typ, status string, data map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event{typ, status, maps.Clone(data)})
}

func (l *log) SealedUsed(field, origin, placement string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = append(l.used, field+" "+origin+" "+placement)
}
func (l *log) Progress(message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, message)
}
func (l *log) Lost(_ string, p binding.Probe) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = append(l.lost, p)
}
func (l *log) Attachment(a abi.Attachment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = append(l.shown, a)
}
func (l *log) End(f binding.Failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, f)
}
func (l *log) Artifact(a binding.Artifact) {
	l.Event("artifact.created", "succeeded",
		map[string]any{"type": a.Type, "size": a.Size, "digest": a.Digest, "summary": a.Summary, "media": a.MediaType})
}
func (l *log) Ask(ctx context.Context, message string, timeout time.Duration) (string, string, error) {
	if l.ask == nil {
		return "", "", binding.ErrNotInteractive
	}
	return l.ask(ctx, message, timeout)
}

func (l *log) of(typ string) (out []event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.typ == typ {
			out = append(out, e)
		}
	}
	return out
}

// A desk is a host with fakes, and one session of it.
type desk struct {
	*browser.Session
	host   *browser.Host
	log    *log
	data   string
	fakes  []*fake
	gates  []*fakeGate
	worker *browser.TestWorker
	// answers are the results of the engine by verb; nil succeeds.
	do func(ctx context.Context, r *engine.Request) (any, *engine.Refusal)
	mu sync.Mutex
}

func newDesk(t *testing.T, change func(*browser.Options, *browser.SessionOptions)) *desk {
	t.Helper()
	d := &desk{log: &log{}, data: t.TempDir()}
	ho := browser.Options{Data: d.data, Start: d.start, Open: d.open, EgressMode: chromium.ModeFlags}
	entry, err := egress.ParseEntry("a.example")
	if err != nil {
		t.Fatal(err)
	}
	so := browser.SessionOptions{Connection: "c", Connector: "shop", Name: "My shop",
		Policy: egress.NewPolicy(entry), Interactive: true}
	if change != nil {
		change(&ho, &so)
	}
	h, err := browser.New(ho)
	if err != nil {
		t.Fatal(err)
	}
	h.WithEngine(func(o engine.Options) *browser.TestWorker {
		d.worker = &browser.TestWorker{Options: o,
			DoVerb: func(ctx context.Context, r *engine.Request) (any, *engine.Refusal) {
				if d.do != nil {
					return d.do(ctx, r)
				}
				return map[string]any{"success": true, "verb": r.Verb}, nil
			}}
		return d.worker
	})
	d.host = h
	d.Session = h.Session(so)
	d.Begin("run_1", d.log)
	return d
}

func (d *desk) end(t *testing.T) {
	t.Helper()
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := d.host.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func (d *desk) start(_ context.Context, o fleet.StartOptions) (page.Browser, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &fake{lost: make(chan struct{}), health: make(chan struct{}, 1), tabs: []string{"tab_1"}, kind: o.Kind}
	d.fakes = append(d.fakes, f)
	return f, nil
}

func (d *desk) open(context.Context, int) (fleet.Gate, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := &fakeGate{lost: make(chan struct{})}
	d.gates = append(d.gates, g)
	return g, nil
}

// call sends one request; an answer is its JSON, and errno that of a refusal.
func (d *desk) call(t *testing.T, request string) (map[string]any, abi.Errno) {
	t.Helper()
	reply, errno := d.Handle(context.Background(), abi.CallBrowser, []byte(request))
	var out map[string]any
	if err := json.Unmarshal(reply, &out); err != nil {
		t.Errorf("%.80s: the reply is no JSON: %q: %v", request, reply, err)
	}
	return out, errno
}

// ok is call for one that has to work.
func (d *desk) ok(t *testing.T, request string) map[string]any {
	t.Helper()
	out, errno := d.call(t, request)
	if errno != abi.OK {
		t.Fatalf("%s: %s %v", request, errno, out)
	}
	return out
}

// refused is call for one that is not to.
func (d *desk) refused(t *testing.T, request, code string, errno abi.Errno) map[string]any {
	t.Helper()
	out, got := d.call(t, request)
	if got != errno || out["code"] != code {
		t.Errorf("%s: %s %v, want %s %s", request, got, out, errno, code)
	}
	return out
}

func (l *log) failures() []binding.Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ends)
}
func (l *log) seen() []abi.Attachment  { l.mu.Lock(); defer l.mu.Unlock(); return slices.Clone(l.shown) }
func (l *log) losses() []binding.Probe { l.mu.Lock(); defer l.mu.Unlock(); return slices.Clone(l.lost) }
func (l *log) said() []string          { l.mu.Lock(); defer l.mu.Unlock(); return slices.Clone(l.told) }
