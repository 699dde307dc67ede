package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

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
		{"placeholder, not interactable", with(plain, func(n *page.Node) { n.Placeholder, n.Disabled = "Save", true }), query("save"), 0.95, "exact_label_match"},
		{"description", with(plain, func(n *page.Node) { n.Description = "Save" }), query("save"), 1, "exact_label_match"},
		{"id", with(plain, func(n *page.Node) { n.ID = "save" }), query("save"), 0.97, "exact_id_match"},
		{"test id", with(plain, func(n *page.Node) { n.TestID = "save" }), query("save"), 0.97, "exact_id_match"},
		{"name attribute", with(plain, func(n *page.Node) { n.NameAtt = "save" }), query("save"), 0.97, "exact_id_match"},
		{"unique css", with(plain, func(n *page.Node) { n.Matches = []int{0} }), by(page.Selector{CSS: "#a"}), 0.95, "css_unique"},
		{"part of an id", with(plain, func(n *page.Node) { n.ID = "btn-save" }), query("save"), 0.75, "partial_id_match"},
		{"part of a text", with(plain, func(n *page.Node) { n.Text = "Save as" }), query("save"), 0.65, "partial_text_match"},
		{"semantic action", slider, query("adjust"), 0.65, "semantic_action_match"},
		{"semantic action beside another rule", with(slider, func(n *page.Node) { n.Label = "adjust volume" }), query("adjust"), 0.7, "semantic_action_match"},
		{"part of a label", with(plain, func(n *page.Node) { n.Label = "Save as" }), query("save"), 0.6, "partial_label_match"},
		{"role", with(plain, func(n *page.Node) { n.Role = "button" }), query("button"), 0.55, "semantic_role_match"},
		{"kind of control", slider, query("volume control"), 0.5, "semantic_control_match"},
		{"tag", with(plain, func(n *page.Node) { n.Tag = "figure" }), query("figure"), 0.35, "tag_match"},
		{"class", with(plain, func(n *page.Node) { n.Classes = []string{"Save"} }), query("save"), 0.35, "tag_match"},
		// Structured members score by the member that matched.
		{"structured name", with(plain, func(n *page.Node) { n.Role, n.Name = "button", "Save" }), by(page.Selector{Role: "button", Name: "save"}), 1, "exact_text_match"},
		{"structured role", with(plain, func(n *page.Node) { n.Role = "button" }), by(page.Selector{Role: "button"}), 0.55, "semantic_role_match"},
		{"structured test id", with(plain, func(n *page.Node) { n.TestID = "save" }), by(page.Selector{TestID: "save"}), 0.97, "exact_id_match"},
		{"structured label", with(plain, func(n *page.Node) { n.Label, n.Disabled = "Save", true }), by(page.Selector{Label: "save"}), 0.95, "exact_label_match"},
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
