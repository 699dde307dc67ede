package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// A bench is an engine over a site, and what it told.
type bench struct {
	*testing.T
	*site
	engine  *engine.Engine
	mu      sync.Mutex // guards signals and records, which timers write too
	signals []engine.Signal
	records []engine.Record
	counts  map[string]int
	owner   bool

	identity *engine.Identity
}

// within runs a test on a site in time that does not pass by itself.
func within(t *testing.T, s func() *site, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, s(), engine.Options{})
		f(b)
		b.engine.Close()
	})
}

func newBench(t *testing.T, s *site, o engine.Options) *bench {
	b := &bench{T: t, site: s, counts: map[string]int{}}
	b.identity = engine.NewIdentity()
	o.Browser, o.Identity = s, b.identity
	o.Signal = func(s engine.Signal) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.signals = append(b.signals, s)
	}
	o.Trace = func(r engine.Record) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.records = append(b.records, r)
	}
	o.Count = func(name string, labels ...string) {
		b.counts[name]++
		for i := 1; i < len(labels); i += 2 {
			b.counts[name+"/"+labels[i]]++
		}
	}
	o.Controlled = func() bool { return b.owner }
	o.Broke = func(err error) { t.Errorf("the host broke: %v", err) }
	b.engine = engine.New(o)
	return b
}

// heard are the signals so far.
func (b *bench) heard() []engine.Signal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.signals)
}

// request is one with the defaults of Parse.
func request(v engine.Verb, target *engine.Target) *engine.Request {
	return &engine.Request{Verb: v, Target: target, Deadline: 10 * time.Second, Actionable: 5 * time.Second,
		MaxRecovery: 3, MaxRetryDepth: 3,
		Type: engine.TypeArgs{Clear: true}, Adjust: engine.AdjustArgs{MaxAttempts: 3},
		Scroll: engine.ScrollArgs{Max: 10, Amount: 0.7},
		Wait:   engine.WaitArgs{Timeout: 10 * time.Second, Attempts: 1, Stability: 250 * time.Millisecond}}
}

func named(role, name string) *engine.Target {
	return &engine.Target{Selector: &engine.Selector{Selector: page.Selector{Role: role, Name: name}}}
}

func tested(id string) *engine.Target {
	return &engine.Target{Selector: &engine.Selector{Selector: page.Selector{TestID: id}}}
}

func says(id, what string) *engine.Predicate {
	return &engine.Predicate{Kind: "text", Op: "equals", Text: what, Target: tested(id)}
}

// click asks for a click on a button that is to bring about p.
func click(name string, p *engine.Predicate) *engine.Request {
	r := request(engine.Click, named("button", name))
	r.Click = engine.ClickArgs{Button: "left", Count: 1, Position: page.Point{X: 0.5, Y: 0.5}}
	r.Expect = p
	return r
}

// act does an action that is not refused.
func (b *bench) act(r *engine.Request) *engine.Result {
	b.Helper()
	reply, refused := b.engine.Do(context.Background(), r)
	if refused != nil {
		b.Fatalf("%s was refused: %v", r.Verb, refused)
	}
	res := reply.(*engine.Result)
	b.lawful(res)
	return res
}

// lawful checks what holds for every result.
func (b *bench) lawful(r *engine.Result) {
	b.Helper()
	state := ""
	for _, t := range r.Transitions {
		if !engine.CanMove(state, t.State, t.CycleID > 0) {
			b.Errorf("%s to %s in cycle %d", state, t.State, t.CycleID)
		}
		state = t.State
	}
	if state != r.State || r.Success != (r.State == engine.Verified) {
		b.Errorf("state %s, last transition %s, success %v", r.State, state, r.Success)
	}
	if len(r.Trace.Steps) == 0 || r.Trace.Attempts < 1 || r.Trace.Attempts > 4 || r.Trace.ActionID != r.ActionID {
		b.Errorf("trace %+v", r.Trace)
	}
	for i, s := range r.Trace.Steps {
		if raw, err := json.Marshal(s.Meta); s.Index != i || s.CycleID > 3 || err != nil || len(raw) > 2<<10 {
			b.Errorf("step %d: %+v", i, s)
		}
	}
	if r.State == engine.Failed {
		if last := r.Trace.Steps[len(r.Trace.Steps)-1]; last.Stage != "recover" {
			b.Errorf("the last step of a failure is %s", last.Stage)
		}
		if r.Terminal == nil || r.FailureCode == nil || r.FailureReason == nil || !r.Recovery.Terminal ||
			r.Terminal.Strategies == nil {
			b.Errorf("a failure without its parts: %+v", r)
		}
	}
	if _, err := json.Marshal(r); err != nil {
		b.Errorf("result: %v", err)
	}
}

// is checks the code and detail of a failure; "" is success.
func (b *bench) is(r *engine.Result, code engine.Code, detail string) {
	b.Helper()
	var gotCode engine.Code
	var gotDetail string
	if r.FailureCode != nil {
		gotCode = *r.FailureCode
	}
	if r.Detail != nil {
		gotDetail = *r.Detail
	}
	if gotCode != code || gotDetail != detail {
		raw, _ := json.MarshalIndent(r.Trace, "", " ")
		b.Fatalf("got %q %q, want %q %q\n%s", gotCode, gotDetail, code, detail, raw)
	}
}

func (b *bench) expect(r *engine.Request) *engine.ExpectReply {
	b.Helper()
	reply, refused := b.engine.Do(context.Background(), r)
	if refused != nil {
		b.Fatalf("expect was refused: %v", refused)
	}
	return reply.(*engine.ExpectReply)
}

func ptr[T any](v T) *T { return &v }

// A pair is a browser with a page and, for a time, other tabs. It is its own first
// tab, and remembers what became of the others.
type pair struct {
	*site
	others []page.Tab
	past   []page.Popup
}

func (p *pair) Tabs() []page.Tab { return append([]page.Tab{p}, p.others...) }
func (p *pair) Mark() page.Mark  { return page.Mark(len(p.past)) }
func (p *pair) Happened(since page.Mark) page.Happened {
	return page.Happened{Popups: slices.Clone(p.past[since:])}
}

// An other is a tab in the background.
type other struct {
	*site
	id string
}

func (o other) ID() string { return o.id }

// The next reply lists what was closed since the last one, once, and why:
// between two verbs as well.
func TestClosedTabs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pair{site: newSite(button("Save"))}
		e := engine.New(engine.Options{Browser: p, Identity: engine.NewIdentity()})
		defer e.Close()
		tabs := func() (out []string) {
			r, refused := engine.Parse([]byte(`{"verb":"click","target":{"selector":{"role":"button","name":"Save"}}}`),
				engine.DefaultSettings)
			if refused != nil {
				t.Fatal(refused)
			}
			got, refused := e.Do(context.Background(), r)
			if refused != nil {
				t.Fatal(refused)
			}
			for _, tab := range got.(*engine.Result).Tabs {
				out = append(out, tab.TabID+" "+tab.Closed)
			}
			return out
		}
		check := func(when string, want ...string) {
			t.Helper()
			if got := tabs(); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		p.others = []page.Tab{other{p.site, "tab_2"}, other{p.site, "tab_3"}}
		check("at first", "tab_1 ", "tab_2 ", "tab_3 ")
		p.others = nil
		p.past = append(p.past, page.Popup{Tab: "tab_2", Closed: "it crashed"}, page.Popup{Closed: "too many tabs"},
			page.Popup{Tab: "tab_4"}, page.Popup{Tab: "tab_4", Closed: "it crashed"})
		check("after a crash", "tab_1 ", "tab_2 it crashed", "tab_3 closed", "tab_4 it crashed", " too many tabs")
		check("later", "tab_1 ")
	})
}
