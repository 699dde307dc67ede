package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// TestOwner: the element that acts is preferred over what is written on it, and over
// what it lies in.
func TestOwner(t *testing.T) {
	span := func(ref, up, text string) page.Node {
		return page.Node{Ref: page.Ref(ref), Up: page.Ref(up), Tag: "span", Text: text}
	}
	hears := func(n page.Node) page.Node { n.OwnHear, n.Listens = true, true; return n }
	inherits := func(n page.Node) page.Node { n.Listens = true; return n }
	hand := func(n page.Node) page.Node { n.Cursor = true; return n }
	box := func(n page.Node, x, y, w, h float64) page.Node { n.Bounds = page.Box{X: x, Y: y, W: w, H: h}; return n }
	tab := func(n page.Node) page.Node { n.Tabbable = true; return n }

	for _, c := range []struct {
		name  string
		nodes []page.Node
		want  page.Ref
		via   page.Ref
	}{
		{"text of a button", []page.Node{buttonNode("b", "", "Save"), span("s", "b", "Save")}, "b", ""},
		{"part of a button", []page.Node{buttonNode("b", "", "Save now"), span("s", "b", "Save")}, "b", "s"},
		{"button within a focusable card",
			[]page.Node{tab(span("card", "", "Save")), buttonNode("b", "card", "Save"), span("s", "b", "Save")}, "b", ""},
		{"handler of a card", []page.Node{hears(span("card", "", "Item Save")), inherits(span("s", "card", "Save"))}, "card",
			"s"},
		{"handler on the root of the page",
			[]page.Node{hears(span("root", "", "Save Open")), inherits(span("s", "root", "Save")),
				inherits(buttonNode("o", "root", "Open"))}, "s", ""},
		{"hand within the root of the page", []page.Node{
			hears(span("root", "", "Save Open")), hand(inherits(span("row", "root", "Save"))),
			hand(inherits(span("s", "row", "Save"))), inherits(buttonNode("o", "root", "Open")),
		}, "row", "s"},
		{"smallest box that acts", []page.Node{
			box(tab(span("big", "", "")), 0, 0, 500, 500), box(hears(span("small", "", "")), 0, 0, 100, 100),
			box(span("s", "", "Save"), 10, 10, 20, 20),
		}, "small", "s"},
		{"role without a listener", []page.Node{{Ref: "tab", Tag: "li", Role: "tab", Text: "Save"}}, "tab", ""},
		{"label by wrapping", []page.Node{{Ref: "l", Tag: "label", Text: "Save", Labels: "c"}, fieldNode("c", "l", "")}, "c",
			"l"},
		{"text in a label", []page.Node{{Ref: "l", Tag: "label", Text: "Save me", Labels: "c"}, span("s", "l", "Save"),
			fieldNode("c", "", "")}, "c", "s"},
	} {
		f := mustClick(t, lay(page.Query{}, c.nodes...), query("save"))
		via := page.Ref("")
		if f.Via != nil {
			via = f.Via.Ref
		}
		if f.Node.Ref != c.want || via != c.via {
			t.Errorf("%s: %s via %q (%s)", c.name, f.Node.Ref, via, f.Resolution.Reason)
		}
		if f.Resolution.MatchedCount != 1 {
			t.Errorf("%s: %d candidates", c.name, f.Resolution.MatchedCount)
		}
		if c.via != "" && (f.Resolution.Reason == "exact_text_match" || !f.Resolution.FallbackAvailable) {
			t.Errorf("%s: %+v", c.name, f.Resolution)
		}
	}
}

// TestPromotion: what was found through a passive part is worth 0.02 more.
func TestPromotion(t *testing.T) {
	l := lay(page.Query{}, buttonNode("b", "", "Go"), page.Node{Ref: "s", Up: "b", Tag: "i", Text: "Save as"})
	if f := mustClick(t, l, query("save")); f.Node.Ref != "b" || f.Resolution.Confidence != 0.67 {
		t.Errorf("%s %v", f.Node.Ref, f.Resolution.Confidence)
	}
}

// TestPassive: a text that nothing acts for is no target of an action; what
// only has to be seen may be scrolled to, and read.
func TestPassive(t *testing.T) {
	l := lay(page.Query{}, node("h", "", "h1", "heading", "Total"),
		page.Node{Ref: "p", Tag: "p", Text: "42 EUR", OwnText: true})
	m := missed(t, l, query("total"), engine.ActionRejected, "not_executable")
	if len(m.Resolution.Alternates) != 1 || m.Resolution.Alternates[0].Clickable {
		t.Errorf("%+v", m.Resolution)
	}
	for _, v := range []engine.Verb{engine.Scroll, engine.Hover, engine.Extract, ""} {
		f, miss := l.Resolve(engine.NewIdentity(), query("total"), engine.ResolveOptions{Verb: v})
		if miss != nil || f.Node.Ref != "h" {
			t.Errorf("%s: %v", v, miss)
		}
	}
}

// TestClimbEnds: an owner more than 20 levels up is none.
func TestClimbEnds(t *testing.T) {
	for _, c := range []struct {
		levels int
		found  bool
	}{{19, true}, {20, false}} {
		nodes := []page.Node{{Ref: "top", Tag: "a", Role: "link", Native: true, Bounds: page.Box{X: 900, Y: 900, W: 1, H: 1}}}
		for up := page.Ref("top"); len(nodes) <= c.levels; up = nodes[len(nodes)-1].Ref {
			nodes = append(nodes, page.Node{Ref: up + "x", Up: up, Tag: "div"})
		}
		nodes = append(nodes, page.Node{Ref: "t", Up: nodes[len(nodes)-1].Ref, Tag: "i", Text: "Deep"})
		f, miss := clickRequest(lay(page.Query{}, nodes...), query("deep"))
		if (miss == nil) != c.found {
			t.Errorf("%d levels: %v %v", c.levels, f, miss)
		}
	}
}

// TestLoop: a tree that contains itself ends, whatever a page makes of it.
func TestLoop(t *testing.T) {
	a, b := node("a", "b", "div", "", "Save"), node("b", "a", "div", "", "Save")
	l := lay(page.Query{}, a, b, node("c", "c", "div", "", "Save"))
	missed(t, l, query("save"), engine.ActionRejected, "not_executable")
	within := by(page.Selector{Query: "save"})
	within.Selector.Within = by(page.Selector{Text: "save"})
	within.Selector.Within.Selector.Index = pointer(0)
	missed(t, l, within, engine.ElementNotFound, "")
}

// TestHiddenControl: a page that draws its own box hides the control and leaves its
// label to be clicked; whichever is named, the label is clicked and the control has
// the state.
func TestHiddenControl(t *testing.T) {
	box := page.Node{Ref: "c", Up: "l", Tag: "input", Type: "checkbox", Role: "checkbox", Name: "Agree", Native: true,
		State: page.State{Checked: pointer(false)}}
	l := lay(page.Query{}, page.Node{Ref: "l", Tag: "label", Text: "Agree", Labels: "c"}, box)
	l.Nodes[1].Visible = false
	for _, target := range []*engine.Target{by(page.Selector{Role: "checkbox", Name: "Agree"}),
		by(page.Selector{Text: "Agree"}), query("agree")} {
		f, miss := l.Resolve(engine.NewIdentity(), target, engine.ResolveOptions{Verb: engine.Check})
		if miss != nil || f.Node.Ref != "l" || f.State().Ref != "c" || f.Element.State == nil ||
			f.Element.ExpectedSignal != "value_change" {
			t.Errorf("%+v: %+v %+v", target.Selector, f, miss)
		}
	}
	l.Nodes[1].Visible = true
	if f := mustClick(t, l, query("agree")); f.Node.Ref != "c" || f.Control != nil || f.State() != f.Node {
		t.Errorf("seen: %s", f.Node.Ref)
	}
}
