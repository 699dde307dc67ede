package engine_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// random is a page of any shape, its tree broken now and then, and a target that may
// mean something on it.
func random(r *rand.Rand) (func() *engine.Look, *engine.Target) {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	words := []string{"", "Save", "Save as", "Delete", "Volume", "Invoice 3", "save  "}
	nodes := make([]page.Node, 1+r.IntN(30))
	for i := range nodes {
		n := page.Node{
			Ref: page.Ref(fmt.Sprint("r", i)), Tag: pick("div", "button", "input", "label", "span", "select", "a"), Type: pick("", "", "text", "range", "hidden"),
			Role: pick("", "", "button", "link", "slider", "row", "heading", "textbox"), Name: pick(words...), Text: pick(words...), Label: pick(words...),
			ID: pick("", "", "save", "x12345"), TestID: pick("", "", "", "save"), Frame: pick("", "", "", "f1"), Native: r.IntN(4) == 0, OwnHear: r.IntN(6) == 0,
			Listens: r.IntN(3) == 0, Cursor: r.IntN(6) == 0, Tabbable: r.IntN(8) == 0, Disabled: r.IntN(8) == 0, OwnText: r.IntN(2) == 0,
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
	s := &engine.Selector{Selector: page.Selector{Query: pick("save", "volume", "delete", "button", "slider control", "adjust")}}
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
	return func() *engine.Look { return lay(page.Query{}, append([]page.Node(nil), nodes...)...) }, &engine.Target{Selector: s}
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
		if again == nil || again.Node.Ref != f.Node.Ref || !reflect.DeepEqual(f.Resolution, again.Resolution) || !reflect.DeepEqual(f.Element, again.Element) {
			t.Fatalf("seed %d: %+v then %+v", seed, f, again)
		}
		if !engine.Executable(f.Node) {
			t.Fatalf("seed %d: %+v is not executable", seed, f.Node)
		}
		if c := l.Node(f.Node.Labels); c != nil && f.Node.Tag == "label" && !f.Node.Native && f.Node.Role == "" && f.Control != c {
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
		nodes[i] = page.Node{Ref: page.Ref(fmt.Sprint("r", i)), Tag: "div", Text: "Save", OwnHear: i%3 == 0, Listens: true, Cursor: i%7 == 0, Role: []string{"group", "", "row"}[i%3], Name: []string{"x", "", ""}[i%3]}
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
