package engine_test

import (
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// rows is a table of three rows with a Delete button each.
func rows() *engine.Look {
	var nodes []page.Node
	for i := range 3 {
		row := fmt.Sprintf("row%d", i)
		nodes = append(nodes,
			at(page.Node{Ref: page.Ref(row), Tag: "tr", Role: "row", TestID: row, Text: fmt.Sprintf("Invoice %d Delete", i)}, 0, float64(100*i), 400, 50),
			at(page.Node{Ref: page.Ref("label" + row), Up: page.Ref(row), Tag: "td", Text: fmt.Sprintf("Invoice %d", i)}, 0, float64(100*i), 100, 50),
			at(buttonNode("del"+row, row, "Delete"), 300, float64(100*i), 50, 50))
	}
	return lay(page.Query{}, nodes...)
}

// TestAmbiguous: nothing that looks the same is chosen silently.
func TestAmbiguousLook(t *testing.T) {
	remove := func(f func(*engine.Selector)) *engine.Target {
		s := &engine.Selector{Selector: page.Selector{Role: "button", Name: "Delete"}}
		f(s)
		return &engine.Target{Selector: s}
	}
	m := missed(t, rows(), remove(func(*engine.Selector) {}), engine.AmbiguousTarget, "")
	if m.Resolution.MatchedCount != 3 || len(m.Resolution.Alternates) != 3 || !m.Resolution.FallbackAvailable {
		t.Errorf("%+v", m.Resolution)
	}
	for name, c := range map[string]struct {
		target *engine.Target
		want   page.Ref
	}{
		"index":  {remove(func(s *engine.Selector) { s.Index = pointer(2) }), "delrow2"},
		"within": {remove(func(s *engine.Selector) { s.Within = by(page.Selector{TestID: "row1"}) }), "delrow1"},
		"near":   {remove(func(s *engine.Selector) { s.Near = by(page.Selector{Text: "Invoice 1"}) }), "delrow1"},
		"contains": {&engine.Target{Selector: &engine.Selector{
			Selector: page.Selector{Role: "button", Name: "Delete"},
			Within:   &engine.Target{Selector: &engine.Selector{Selector: page.Selector{Role: "row"}, Contains: "Invoice 2"}},
		}}, "delrow2"},
	} {
		if f := mustClick(t, rows(), c.target); f.Node.Ref != c.want {
			t.Errorf("%s: %s", name, f.Node.Ref)
		}
	}
	missed(t, rows(), remove(func(s *engine.Selector) { s.Index = pointer(3) }), engine.ElementNotFound, "")
	missed(t, rows(), remove(func(s *engine.Selector) { s.Within = by(page.Selector{Role: "row"}) }), engine.AmbiguousTarget, "")
	missed(t, rows(), remove(func(s *engine.Selector) { s.Within = by(page.Selector{TestID: "row9"}) }), engine.ElementNotFound, "")
	missed(t, rows(), remove(func(s *engine.Selector) { s.Frame = "pay" }), engine.ElementNotFound, "")
	missed(t, rows(), remove(func(s *engine.Selector) { s.Frame = "none" }), engine.ElementNotFound, "")
}

// TestEquallyNear: an anchor in the middle of two separates nothing.
func TestEquallyNear(t *testing.T) {
	l := lay(page.Query{}, at(buttonNode("a", "", "Go"), 0, 0, 10, 10), at(page.Node{Ref: "m", Tag: "p", Text: "Middle"}, 50, 0, 10, 10), at(buttonNode("b", "", "Go"), 100, 0, 10, 10))
	target := by(page.Selector{Name: "Go"})
	target.Selector.Near = by(page.Selector{Text: "Middle"})
	missed(t, l, target, engine.AmbiguousTarget, "")
}

// TestClearMargin: what is better by more than 0.05 is taken, the others are kept.
func TestClearMargin(t *testing.T) {
	l := lay(page.Query{}, buttonNode("as", "", "Save as"), buttonNode("b", "", "Save"), buttonNode("all", "", "Save all"))
	f := mustClick(t, l, query("save"))
	if f.Node.Ref != "b" || f.Resolution.Confidence != 1 || f.Resolution.MatchedCount != 1 || len(f.Resolution.Alternates) != 2 {
		t.Errorf("%s %+v", f.Node.Ref, f.Resolution)
	}
	missed(t, lay(page.Query{}, buttonNode("as", "", "Save as"), buttonNode("all", "", "Save all")), query("save"), engine.AmbiguousTarget, "")
}

// TestCollision: elements that share a stable id are always ambiguous, and up to ten
// are listed.
func TestCollision(t *testing.T) {
	var nodes []page.Node
	for i := range 12 {
		b := buttonNode("", "", fmt.Sprint("B", i))
		b.TestID, b.Disabled = "save", true
		if i == 0 {
			b.Text = "Save" // a clear margin does not help
		}
		nodes = append(nodes, b)
	}
	for i := range nodes {
		nodes[i].Ref = page.Ref(fmt.Sprint("c", i))
	}
	m := missed(t, lay(page.Query{}, nodes...), by(page.Selector{TestID: "save", Query: "save"}), engine.AmbiguousTarget, "")
	if m.Resolution.MatchedCount != 12 || len(m.Resolution.Alternates) != 10 {
		t.Errorf("%d of %d", len(m.Resolution.Alternates), m.Resolution.MatchedCount)
	}
}

// TestHidden: what is seen is preferred; what is not is named only for the lack of it,
// so that the check before an input can say why. A file input is hidden on purpose.
func TestHidden(t *testing.T) {
	hidden := buttonNode("h", "", "Save")
	hidden.Type = "hidden"
	if f := mustClick(t, lay(page.Query{}, hidden, buttonNode("b", "", "Save")), by(page.Selector{Name: "Save"})); f.Node.Ref != "b" {
		t.Errorf("%s", f.Node.Ref)
	}
	if f := mustClick(t, lay(page.Query{}, hidden), by(page.Selector{Name: "Save"})); f.Node.Ref != "h" || f.Element.Actionable {
		t.Errorf("%s %t", f.Node.Ref, f.Element.Actionable)
	}
	l := lay(page.Query{}, buttonNode("b", "", "Attach"), page.Node{Ref: "f", Tag: "input", Type: "file", Native: true, Name: "Attach"})
	l.Nodes[1].Visible = false
	f, miss := l.Resolve(engine.NewIdentity(), by(page.Selector{CSS: "input"}), engine.ResolveOptions{Verb: engine.Upload})
	if miss == nil || f != nil {
		t.Errorf("css that was not asked for: %v", f)
	}
}

// TestSkip: a candidate that was tried is not chosen again.
func TestSkip(t *testing.T) {
	l := lay(page.Query{}, buttonNode("a", "", "Go"), buttonNode("b", "", "Go"))
	f, miss := l.Resolve(engine.NewIdentity(), by(page.Selector{Name: "Go"}), engine.ResolveOptions{Verb: engine.Click, Skip: map[page.Ref]bool{"a": true}})
	if miss != nil || f.Node.Ref != "b" {
		t.Errorf("%v", miss)
	}
}
