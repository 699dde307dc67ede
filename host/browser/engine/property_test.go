package engine_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// TestDeltaThatHeldAlready: a declared delta that holds before is no proof of a fill,
// a select or a check that did nothing; one that comes about is.
func TestDeltaThatHeldAlready(t *testing.T) {
	idle := says("status", "idle")
	fill := func() *engine.Request {
		r := request(engine.Fill, named("textbox", "Mail"))
		r.Type.Plain, r.Expect = "a@b.test", idle
		return r
	}
	form := func() *site { return newSite(field("Mail"), text("status", "idle")) }
	within(t, form, func(b *bench) {
		got := b.act(fill())
		if b.is(got, "", ""); !got.Dispatched || *b.nodes[0].State.TextValue != "a@b.test" {
			t.Errorf("nothing was typed: %+v", got)
		}
		if got = b.act(fill()); got.Dispatched || !got.Success {
			t.Errorf("both hold, and it was typed again: %+v", got)
		}
	})
	within(t, func() *site {
		s := form()
		s.on["n0"] = func() { s.nodes[0].State.TextValue = ptr("") }
		return s
	}, func(b *bench) { b.is(b.act(fill()), engine.VerificationFailed, "") })
	within(t, func() *site { // a field that makes something else of what is typed
		s := form()
		s.on["n0"] = func() { s.nodes[0].State.TextValue, s.nodes[1].Text = ptr(""), "a@b.test" }
		return s
	}, func(b *bench) {
		r := fill()
		r.Expect = says("status", "a@b.test")
		b.is(b.act(r), "", "")
	})
	within(t, func() *site { return newSite(checkbox(false), text("status", "idle")) }, func(b *bench) {
		r := request(engine.Check, named("checkbox", "Terms"))
		r.Check, r.Expect = true, idle
		if got := b.act(r); got.Success || !got.Dispatched {
			t.Errorf("a box that stays empty is checked: %+v", got)
		}
	})
	within(t, func() *site { return newSite(theme(), text("status", "idle")) }, func(b *bench) {
		r := request(engine.Select, named("combobox", "Theme"))
		r.Select.Label, r.Expect = ptr("Dark"), idle
		if b.is(b.act(r), "", ""); b.nodes[0].State.Selected.ID != "dark" {
			t.Error("nothing was selected")
		}
	})
}

// TestNothingIsSentTwice: what made the page send something is a side effect from then
// on, and what its author calls no repetition is done once.
func TestNothingIsSentTwice(t *testing.T) {
	no, yes := false, true
	for name, c := range map[string]struct {
		sends      bool
		idempotent *bool
		least      int
		most       int
		effect     string
	}{
		"stays in the page":         {false, nil, 2, 4, engine.LocalState},
		"is sent":                   {true, nil, 1, 1, engine.SideEffect},
		"must not be repeated":      {false, &no, 1, 1, engine.LocalState},
		"is sent, and may be twice": {true, &yes, 2, 4, engine.SideEffect},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func() *site {
				s := newSite(checkbox(false), field("Mail"))
				send := func() {
					if c.sends {
						s.happened.Sent++
					}
				}
				s.on["n0"] = send
				s.on["n1"] = func() { s.nodes[1].State.TextValue = ptr(""); send() }
				return s
			}, func(b *bench) {
				for _, r := range []*engine.Request{request(engine.Check, named("checkbox", "Terms")),
					request(engine.Fill, named("textbox", "Mail"))} {
					b.happened.Sent, b.sent = 0, 0
					r.Check, r.Type.Plain, r.Idempotent, r.Deadline = true, "x", c.idempotent, 60e9
					got := b.act(r)
					if got.Success || b.sent < c.least || b.sent > c.most || got.ActionType != c.effect {
						t.Errorf("%s: sent %d times, %s", r.Verb, b.sent, got.ActionType)
					}
					if got.Verification.Classification.Outcome == "success" {
						t.Errorf("%s: a failure is told as success: %+v", r.Verb, got.Verification.Classification)
					}
				}
			})
		})
	}
}

// TestAdjustThatIsSent: the other ways to a value are not tried once the page told its
// server of the first one.
func TestAdjustThatIsSent(t *testing.T) {
	within(t, func() *site {
		s := newSite(slider(true, 10, 5))
		s.on["n0"] = func() { s.nodes[0].State.Value, s.happened.Sent = ptr(35.0), s.happened.Sent+1 }
		return s
	}, func(b *bench) {
		r := adjust(33)
		r.Deadline = 30e9
		if b.is(b.act(r), engine.ConvergenceFailed, ""); b.sent != 1 {
			t.Errorf("sent %d times", b.sent)
		}
	})
}

// TestFailureThatChangedThePage: whatever a failed action changed is not its success.
func TestFailureThatChangedThePage(t *testing.T) {
	within(t, func() *site {
		s := shop()
		s.on["n0"] = func() { s.nodes[1].Text = "Deleted" }
		return s
	}, func(b *bench) {
		got := b.act(click("Save", says("status", "Saved")))
		if b.is(got, engine.VerificationFailed, ""); got.Verification.Classification.Outcome != "ui_failure" {
			t.Errorf("%+v", got.Verification.Classification)
		}
	})
}

// TestTickOfThreeStates: from neither to off is a step on the way to on, also where the
// page tells its server of each.
func TestTickOfThreeStates(t *testing.T) {
	within(t, func() *site {
		s := newSite(checkbox(false))
		s.nodes[0].State = page.State{Mixed: true}
		s.on["n0"] = func() {
			s.happened.Sent++
			on := s.nodes[0].State.Checked != nil
			s.nodes[0].State = page.State{Checked: &on}
		}
		return s
	}, func(b *bench) {
		if b.is(b.act(tick()), "", ""); b.sent != 2 {
			t.Errorf("clicked %d times", b.sent)
		}
	})
}

// TestComesAndGoes: a delta that holds in every other moment is not proved by two looks
// that happen to see it.
func TestComesAndGoes(t *testing.T) {
	for _, pace := range []time.Duration{90 * time.Millisecond, 110 * time.Millisecond, 130 * time.Millisecond} {
		within(t, func() *site {
			s := shop()
			s.on["n0"] = func() {
				for n := range 200 {
					s.later(time.Duration(n)*pace, func() { s.nodes[1].Text = []string{"idle", "Saved"}[n%2] })
				}
			}
			return s
		}, func(b *bench) { b.is(b.act(click("Save", says("status", "Saved"))), engine.VerificationFailed, "") })
	}
	within(t, func() *site { // one that flickers once and stays
		s := shop()
		s.on["n0"] = func() {
			s.nodes[1].Text = "Saved"
			s.later(50*time.Millisecond, func() { s.nodes[1].Text = "idle" })
			s.later(150*time.Millisecond, func() { s.nodes[1].Text = "Saved" })
		}
		return s
	}, func(b *bench) { b.is(b.act(click("Save", says("status", "Saved"))), "", "") })
}

// random is a page of any shape, its tree broken now and then, and a target that may
// mean something on it.
func random(r *rand.Rand) (func() *engine.Look, *engine.Target) {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	words := []string{"", "Save", "Save as", "Delete", "Volume", "Invoice 3", "save  "}
	nodes := make([]page.Node, 1+r.IntN(30))
	for i := range nodes {
		n := page.Node{
			Ref: page.Ref(fmt.Sprint("r", i)), Tag: pick("div", "button", "input", "label", "span", "select", "a"),
			Type: pick("", "", "text", "range", "hidden"),
			Role: pick("", "", "button", "link", "slider", "row", "heading", "textbox"), Name: pick(words...),
			Text: pick(words...), Label: pick(words...), ID: pick("", "", "save", "x12345"), TestID: pick("", "", "", "save"),
			Frame: pick("", "", "", "f1"), Native: r.IntN(4) == 0, OwnHear: r.IntN(6) == 0, Listens: r.IntN(3) == 0,
			Cursor: r.IntN(6) == 0, Tabbable: r.IntN(8) == 0, Disabled: r.IntN(8) == 0, OwnText: r.IntN(2) == 0,
			Bounds: page.Box{X: float64(r.IntN(900)), Y: float64(r.IntN(900)), W: float64(r.IntN(400)), H: float64(r.IntN(60))},
		}
		switch {
		case r.IntN(40) == 0:
			n.Up = page.Ref(fmt.Sprint("r", r.IntN(len(nodes)))) // possibly itself
		case i > 0 && r.IntN(3) > 0:
			n.Up = page.Ref(fmt.Sprint("r", r.IntN(i)))
		}
		if n.Tag == "label" && r.IntN(2) == 0 {
			n.Labels = page.Ref(fmt.Sprint("r", r.IntN(len(nodes))))
		}
		nodes[i] = n
	}
	s := &engine.Selector{Selector: page.Selector{Query: pick("save", "volume", "delete", "button",
		"slider control", "adjust")}}
	if r.IntN(2) == 0 {
		s.Selector = page.Selector{Role: pick("", "button", "row"), Name: pick("Save", "Delete")}
	}
	if r.IntN(4) == 0 {
		s.Exact = pointer(r.IntN(2) == 0)
	}
	if r.IntN(5) == 0 {
		s.Index = pointer(r.IntN(3))
	}
	if r.IntN(5) == 0 {
		s.Near = query("invoice 3")
	}
	if r.IntN(8) == 0 {
		s.Within = by(page.Selector{Role: "row"})
		s.Within.Selector.Index = pointer(0)
	}
	return func() *engine.Look { return lay(page.Query{}, append([]page.Node(nil), nodes...)...) },
		&engine.Target{Selector: s}
}

// TestResolveProperties, over many pages: the choice is a function of its input; what a
// click is to work on is executable and never a label that stands for a control; a
// score is one; and where two are equally good, nothing is chosen.
func TestResolveProperties(t *testing.T) {
	found, missed := 0, map[engine.Code]int{}
	for seed := range uint64(5_000) {
		page, target := random(rand.New(rand.NewPCG(seed, 1)))
		l := page()
		f, miss := clickRequest(l, target)
		again, missAgain := clickRequest(page(), target)
		if (f == nil) == (miss == nil) {
			t.Fatalf("seed %d: both or neither", seed)
		}
		if miss != nil {
			if missAgain == nil || !reflect.DeepEqual(miss.Resolution, missAgain.Resolution) || miss.Code != missAgain.Code {
				t.Fatalf("seed %d: %+v then %+v", seed, miss, missAgain)
			}
			missed[miss.Code]++
			continue
		}
		found++
		if again == nil || again.Node.Ref != f.Node.Ref || !reflect.DeepEqual(f.Resolution, again.Resolution) ||
			!reflect.DeepEqual(f.Element, again.Element) {
			t.Fatalf("seed %d: %+v then %+v", seed, f, again)
		}
		if !engine.Executable(f.Node) {
			t.Fatalf("seed %d: %+v is not executable", seed, f.Node)
		}
		if c := l.Node(f.Node.Labels); c != nil && f.Node.Tag == "label" && !f.Node.Native &&
			f.Node.Role == "" && f.Control != c {
			t.Fatalf("seed %d: %s labels %s", seed, f.Node.Ref, c.Ref)
		}
		if f.Control != nil && f.Control.Visible && !f.Control.Bounds.Empty() {
			t.Fatalf("seed %d: %s stands for %s, which is seen", seed, f.Node.Ref, f.Control.Ref)
		}
		if s := f.Resolution.Confidence; s <= 0 || s > 1 {
			t.Fatalf("seed %d: score %v", seed, s)
		}
		s := target.Selector
		if cs := f.Candidates; s.Index == nil && s.Near == nil && len(cs) > 1 && cs[0].Score-cs[1].Score <= 0.05 {
			t.Fatalf("seed %d: %v was chosen over %v", seed, cs[0], cs[1])
		}
	}
	for _, code := range []engine.Code{engine.ElementNotFound, engine.AmbiguousTarget, engine.ActionRejected} {
		if missed[code] == 0 {
			t.Errorf("no page was %s: the pages are too tame", code)
		}
	}
	if found < 300 {
		t.Errorf("only %d of the pages had an answer", found)
	}
}

// wall is a page of many nodes, deeply nested or flat, all of which match.
func wall(n int, deep bool) *engine.Look {
	nodes := make([]page.Node, n)
	for i := range nodes {
		nodes[i] = page.Node{Ref: page.Ref(fmt.Sprint("r", i)), Tag: "div", Text: "Save", OwnHear: i%3 == 0, Listens: true,
			Cursor: i%7 == 0, Role: []string{"group", "", "row"}[i%3], Name: []string{"x", "", ""}[i%3]}
		if i > 0 && deep {
			nodes[i].Up = nodes[i-1].Ref
		}
	}
	return lay(page.Query{}, nodes...)
}

// BenchmarkHostile: the largest observation, made to be as dear as possible.
func BenchmarkHostile(b *testing.B) {
	for _, deep := range []bool{false, true} {
		l := wall(2000, deep)
		b.Run(fmt.Sprintf("resolve/deep=%t", deep), func(b *testing.B) {
			for b.Loop() {
				clickRequest(l, query("save"))
			}
		})
		b.Run(fmt.Sprintf("snapshot/deep=%t", deep), func(b *testing.B) {
			for b.Loop() {
				l.Snapshot(engine.NewIdentity(), &engine.SnapshotArgs{Limit: 2000})
			}
		})
	}
}
