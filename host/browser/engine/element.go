package engine

import (
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Element is E of B106; its id is good until 256 others were resolved (B131).
func (l *Look) Element(id *Identity, n *page.Node) Element { return l.element(n, id.keep(l, n)) }

// element is E of B106, under an id.
func (l *Look) element(n *page.Node, id string) Element {
	return Element{
		ElementID: id, StableID: StableID(n), Role: n.Role, Label: labelOf(n), Text: n.Text, TestTag: n.TestID,
		Selector: l.elementSelector(n), State: stateOf(n), Semantic: l.Semantic(n), Bounds: n.Bounds, Frame: n.Frame,
		Actionable: Executable(n) && n.Visible && !n.Disabled,
	}
}

// elementSelector describes n with the worth of the description: without a stable id
// it is at most 0.90 (B108).
func (l *Look) elementSelector(n *page.Node) *ElementSelector {
	s := ElementSelector{Value: selectorOf(n)}
	switch stable := StableID(n); {
	case stable == "" && n.Name != "":
		s.Confidence = Confidence{Score: 0.9, Reason: "no_stable_id"}
	case stable == "":
		s.Confidence = Confidence{Score: 0.5, Reason: "no_stable_id"}
	case l.stable[stable] > 1:
		s.Confidence = Confidence{Score: 0.5, Reason: "stable_id_shared"}
	default:
		s.Confidence = Confidence{Score: float64(exactID.score) / 1000, Reason: exactID.reason}
	}
	return &s
}

// stateOf is what n exposes (B116), without what was typed into a password field.
func stateOf(n *page.Node) *page.State {
	s := n.State
	if n.Secret {
		s.TextValue, s.RawValue, s.Value = nil, nil, nil
	}
	if s == (page.State{}) {
		return nil
	}
	return &s
}

// labelOf is what people would call n.
func labelOf(n *page.Node) string {
	for _, s := range []string{n.Name, n.AriaLabel, n.Label, n.Placeholder, n.Text} {
		if s != "" {
			return s
		}
	}
	return ""
}

// cutText shortens text to at most n bytes, between two characters.
func cutText(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// ExpectedSignal is what usually follows when n is used: advice, never proof (B56).
func ExpectedSignal(n *page.Node) string {
	switch {
	case n.Leaves, n.Submits:
		return "navigation"
	case n.Popup:
		return "menu"
	case n.Tag == "select", n.Role == "option", n.Role == "radio", n.Role == "tab", n.Role == "listbox", n.Role == "combobox":
		return "selection"
	case n.Editable, n.Role == "slider", n.Role == "spinbutton", n.Role == "checkbox", n.Role == "switch":
		return "value_change"
	}
	return "none"
}
