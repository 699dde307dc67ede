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
			at(page.Node{Ref: page.Ref(row), Tag: "tr", Role: "row", TestID: row, Text: fmt.Sprintf("Invoice %d Delete", i)}, 0,
				float64(100*i), 400, 50),
			at(page.Node{Ref: page.Ref("label" + row), Up: page.Ref(row), Tag: "td", Text: fmt.Sprintf("Invoice %d", i)}, 0,
				float64(100*i), 100, 50),
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
	missed(t, rows(), remove(func(s *engine.Selector) { s.Within = by(page.Selector{Role: "row"}) }),
		engine.AmbiguousTarget, "")
	missed(t, rows(), remove(func(s *engine.Selector) { s.Within = by(page.Selector{TestID: "row9"}) }),
		engine.ElementNotFound, "")
	missed(t, rows(), remove(func(s *engine.Selector) { s.Frame = "pay" }), engine.ElementNotFound, "")
	missed(t, rows(), remove(func(s *engine.Selector) { s.Frame = "none" }), engine.ElementNotFound, "")
}

// TestEquallyNear: an anchor in the middle of two separates nothing.
func TestEquallyNear(t *testing.T) {
	l := lay(page.Query{}, at(buttonNode("a", "", "Go"), 0, 0, 10, 10),
		at(page.Node{Ref: "m", Tag: "p", Text: "Middle"}, 50, 0, 10, 10), at(buttonNode("b", "", "Go"), 100, 0, 10, 10))
	target := by(page.Selector{Name: "Go"})
	target.Selector.Near = by(page.Selector{Text: "Middle"})
	missed(t, l, target, engine.AmbiguousTarget, "")
}

// TestClearMargin: what is better by more than 0.05 is taken, the others are kept.
func TestClearMargin(t *testing.T) {
	l := lay(page.Query{}, buttonNode("as", "", "Save as"), buttonNode("b", "", "Save"), buttonNode("all", "", "Save all"))
	f := mustClick(t, l, query("save"))
	if f.Node.Ref != "b" || f.Resolution.Confidence != 1 || f.Resolution.MatchedCount != 1 ||
		len(f.Resolution.Alternates) != 2 {
		t.Errorf("%s %+v", f.Node.Ref, f.Resolution)
	}
	missed(t, lay(page.Query{}, buttonNode("as", "", "Save as"), buttonNode("all", "", "Save all")), query("save"),
		engine.AmbiguousTarget, "")
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
	m := missed(t, lay(page.Query{}, nodes...), by(page.Selector{TestID: "save", Query: "save"}),
		engine.AmbiguousTarget, "")
	if m.Resolution.MatchedCount != 12 || len(m.Resolution.Alternates) != 10 {
		t.Errorf("%d of %d", len(m.Resolution.Alternates), m.Resolution.MatchedCount)
	}
}

// TestHidden: what is seen is preferred; what is not is named only for the lack of it,
// so that the check before an input can say why. A file input is hidden on purpose.
func TestHidden(t *testing.T) {
	hidden := buttonNode("h", "", "Save")
	hidden.Type = "hidden"
	if f := mustClick(t, lay(page.Query{}, hidden, buttonNode("b", "", "Save")),
		by(page.Selector{Name: "Save"})); f.Node.Ref != "b" {
		t.Errorf("%s", f.Node.Ref)
	}
	if f := mustClick(t, lay(page.Query{}, hidden), by(page.Selector{Name: "Save"})); f.Node.Ref != "h" ||
		f.Element.Actionable {
		t.Errorf("%s %t", f.Node.Ref, f.Element.Actionable)
	}
	l := lay(page.Query{}, buttonNode("b", "", "Attach"),
		page.Node{Ref: "f", Tag: "input", Type: "file", Native: true, Name: "Attach"})
	l.Nodes[1].Visible = false
	f, miss := l.Resolve(engine.NewIdentity(), by(page.Selector{CSS: "input"}), engine.ResolveOptions{Verb: engine.Upload})
	if miss == nil || f != nil {
		t.Errorf("css that was not asked for: %v", f)
	}
}

// TestSkip: a candidate that was tried is not chosen again.
func TestSkip(t *testing.T) {
	l := lay(page.Query{}, buttonNode("a", "", "Go"), buttonNode("b", "", "Go"))
	f, miss := l.Resolve(engine.NewIdentity(), by(page.Selector{Name: "Go"}),
		engine.ResolveOptions{Verb: engine.Click, Skip: map[page.Ref]bool{"a": true}})
	if miss != nil || f.Node.Ref != "b" {
		t.Errorf("%v", miss)
	}
}

// TestScores reproduces the table of scores row by row: one element that fits by one rule.
func TestScores(t *testing.T) {
	with := func(n page.Node, f func(*page.Node)) page.Node { f(&n); return n }
	plain := page.Node{Tag: "div", OwnHear: true} // interactable: +0.05
	slider := page.Node{Tag: "div", Role: "slider", Tabbable: true}
	for _, c := range []struct {
		name   string
		n      page.Node
		t      *engine.Target
		score  float64
		reason string
	}{
		{"text", with(plain, func(n *page.Node) { n.Text = "Save" }), query("  save "), 1, "exact_text_match"},
		{"name", with(plain, func(n *page.Node) { n.Name = "SAVE" }), query("save"), 1, "exact_text_match"},
		{"aria label", with(plain, func(n *page.Node) { n.AriaLabel = "Save" }), query("save"), 1, "exact_label_match"},
		{"placeholder, not interactable", with(plain, func(n *page.Node) { n.Placeholder, n.Disabled = "Save", true }),
			query("save"), 0.95, "exact_label_match"},
		{"description", with(plain, func(n *page.Node) { n.Description = "Save" }), query("save"), 1, "exact_label_match"},
		{"id", with(plain, func(n *page.Node) { n.ID = "save" }), query("save"), 0.97, "exact_id_match"},
		{"test id", with(plain, func(n *page.Node) { n.TestID = "save" }), query("save"), 0.97, "exact_id_match"},
		{"name attribute", with(plain, func(n *page.Node) { n.NameAtt = "save" }), query("save"), 0.97, "exact_id_match"},
		{"unique css", with(plain, func(n *page.Node) { n.Matches = []int{0} }), by(page.Selector{CSS: "#a"}),
			0.95, "css_unique"},
		{"part of an id", with(plain, func(n *page.Node) { n.ID = "btn-save" }), query("save"), 0.75, "partial_id_match"},
		{"part of a text", with(plain, func(n *page.Node) { n.Text = "Save as" }), query("save"), 0.65, "partial_text_match"},
		{"semantic action", slider, query("adjust"), 0.65, "semantic_action_match"},
		{"semantic action beside another rule", with(slider, func(n *page.Node) { n.Label = "adjust volume" }),
			query("adjust"), 0.7, "semantic_action_match"},
		{"part of a label", with(plain, func(n *page.Node) { n.Label = "Save as" }), query("save"), 0.6,
			"partial_label_match"},
		{"role", with(plain, func(n *page.Node) { n.Role = "button" }), query("button"), 0.55, "semantic_role_match"},
		{"kind of control", slider, query("volume control"), 0.5, "semantic_control_match"},
		{"tag", with(plain, func(n *page.Node) { n.Tag = "figure" }), query("figure"), 0.35, "tag_match"},
		{"class", with(plain, func(n *page.Node) { n.Classes = []string{"Save"} }), query("save"), 0.35, "tag_match"},
		// Structured members score by the member that matched.
		{"structured name", with(plain, func(n *page.Node) { n.Role, n.Name = "button", "Save" }),
			by(page.Selector{Role: "button", Name: "save"}), 1, "exact_text_match"},
		{"structured role", with(plain, func(n *page.Node) { n.Role = "button" }), by(page.Selector{Role: "button"}), 0.55,
			"semantic_role_match"},
		{"structured test id", with(plain, func(n *page.Node) { n.TestID = "save" }), by(page.Selector{TestID: "save"}),
			0.97, "exact_id_match"},
		{"structured label", with(plain, func(n *page.Node) { n.Label, n.Disabled = "Save", true }),
			by(page.Selector{Label: "save"}), 0.95, "exact_label_match"},
	} {
		l := lay(page.Query{Selectors: []page.Selector{{CSS: "#a"}}}, c.n)
		f, miss := clickRequest(l, c.t)
		if miss != nil {
			t.Errorf("%s: %s", c.name, miss.Code)
			continue
		}
		if f.Resolution.Confidence != c.score || f.Resolution.Reason != c.reason {
			t.Errorf("%s: %v %s", c.name, f.Resolution.Confidence, f.Resolution.Reason)
		}
	}
}

// TestExact: with exact only whole matches count; without it structured members match
// in part too.
func TestExact(t *testing.T) {
	exactly := func(s page.Selector, exact bool) *engine.Target {
		return &engine.Target{Selector: &engine.Selector{Selector: s, Exact: &exact}}
	}
	l := lay(page.Query{}, buttonNode("b", "", "Save as"))
	missed(t, l, exactly(page.Selector{Query: "save"}, true), engine.ElementNotFound, "")
	missed(t, l, by(page.Selector{Name: "save"}), engine.ElementNotFound, "")
	missed(t, l, by(page.Selector{Role: "but"}), engine.ElementNotFound, "")
	missed(t, l, exactly(page.Selector{Query: "press the button"}, true), engine.ElementNotFound, "")
	if f := mustClick(t, l, exactly(page.Selector{Name: "save"}, false)); f.Resolution.Confidence != 0.65 {
		t.Errorf("%+v", f.Resolution)
	}
	if f := mustClick(t, l, exactly(page.Selector{Query: "button"}, true)); f.Resolution.Reason != "semantic_role_match" {
		t.Errorf("%+v", f.Resolution)
	}
	missed(t, l, by(page.Selector{Role: "button", Name: "open"}), engine.ElementNotFound, "")
}

// TestMarksOfCSS: css that several elements satisfy is a mark of the tag only, and an
// index makes one of it what a unique one is.
func TestMarksOfCSS(t *testing.T) {
	a, b := buttonNode("a", "", "A"), buttonNode("b", "", "B")
	a.Matches, b.Matches = []int{1}, []int{1}
	l := lay(page.Query{Selectors: []page.Selector{{CSS: "i"}, {CSS: "button"}}}, a, b)
	m := missed(t, l, by(page.Selector{CSS: "button"}), engine.AmbiguousTarget, "")
	if len(m.Resolution.Alternates) != 2 || m.Resolution.Confidence != 0.35 {
		t.Errorf("%+v", m.Resolution)
	}
	target := by(page.Selector{CSS: "button"})
	target.Selector.Index = pointer(1)
	if f := mustClick(t, l, target); f.Node.Ref != "b" || f.Resolution.Confidence != 0.95 {
		t.Errorf("%s %+v", f.Node.Ref, f.Resolution)
	}
	missed(t, l, by(page.Selector{CSS: "i"}), engine.ElementNotFound, "")
}

// What may have been meant is named, the likest first, and nothing that is unlike.
func TestNearMisses(t *testing.T) {
	node := func(ref page.Ref, role, name string) page.Node {
		return page.Node{Ref: ref, Tag: "div", Role: role, Name: name, Visible: true, Bounds: page.Box{W: 10, H: 10}}
	}
	o := &page.Observation{Document: "d", Nodes: []page.Node{
		node("1", "textbox", "Username:"), node("2", "button", "Sign in now"), node("3", "link", "Help"),
		node("4", "button", "Sing in"),
	}}
	l := engine.NewLook(o, page.Query{})
	for want, names := range map[string][]string{
		"Username": {"Username:"}, "Usernane": {"Username:"}, "Sign in": {"Sign in now", "Sing in"},
		"Sign in now!": {"Sign in now"}, "Logout": nil, "x": nil,
	} {
		var got []string
		for _, a := range l.NearMisses(engine.NewIdentity(), &engine.Selector{Selector: page.Selector{Name: want}}) {
			got = append(got, a.Text)
		}
		if len(got) != len(names) || len(got) > 0 && got[0] != names[0] {
			t.Errorf("%q: %q, want %q", want, got, names)
		}
	}
}
