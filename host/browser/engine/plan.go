package engine

import (
	"slices"
)

// Planning is the semantic block of a snapshot: made of its elements alone, for
// planning only, and never used to prove or to act (B111). Where it and the elements
// disagree, they are right.
type Planning struct {
	Screen     string   `json:"screen"` // dialog, login, form, list, table, article or unknown
	Signals    []string `json:"signals"`
	Actions    []string `json:"actions_available"`
	Confidence string   `json:"confidence"`
	Warnings   []string `json:"warnings"`
}

// maxActions of a page are listed.
const maxActions = 20

// plan is nil for a page without elements.
func plan(l *Look, elements []Element) *Planning {
	if len(elements) == 0 {
		return nil
	}
	p := &Planning{Screen: "unknown", Signals: []string{}, Actions: []string{}, Confidence: "low", Warnings: []string{}}
	c := tally(l, elements)
	for _, s := range []struct {
		on           bool
		screen, sure string
		signal       string
	}{
		{c.dialogs > 0, "dialog", "high", "a dialog is shown"},
		{c.secrets > 0, "login", "high", "a password field is shown"},
		{c.fields > 1 && c.submits > 0, "form", "medium", "fields and a way to submit them"},
		{c.rows > 2, "table", "medium", "rows of a table"},
		{c.items > 2, "list", "medium", "items of a list"},
		{c.headings > 0 && c.texts > c.fields, "article", "low", "a heading with text"},
	} {
		if !s.on {
			continue
		}
		if p.Screen == "unknown" {
			p.Screen, p.Confidence = s.screen, s.sure
		}
		p.Signals = append(p.Signals, s.signal)
	}
	for _, e := range elements {
		if name := cutText(e.Label, 80); e.Actionable && name != "" && len(p.Actions) < maxActions && !slices.Contains(p.Actions, e.Role+": "+name) {
			p.Actions = append(p.Actions, e.Role+": "+name)
		}
	}
	p.warn(l, c)
	return p
}

func (p *Planning) warn(l *Look, c counts) {
	for _, w := range []struct {
		on   bool
		text string
	}{
		{l.Loading != nil, "the page is still loading"},
		{l.Truncated, "the page has more than was read"},
		{c.frames > 0, "some elements are in frames"},
		{p.Screen == "unknown", "the kind of page is not clear"},
	} {
		if w.on {
			p.Warnings = append(p.Warnings, w.text)
		}
	}
}

// counts of what a snapshot shows.
type counts struct {
	dialogs, secrets, fields, submits, rows, items, headings, texts, frames int
}

func tally(l *Look, elements []Element) counts {
	var c counts
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if !n.Visible {
			continue
		}
		c.secrets += count(n.Secret)
		c.submits += count(n.Submits)
		c.fields += count(n.InForm && n.Editable)
	}
	for _, e := range elements {
		c.dialogs += count(e.Role == "dialog" || e.Role == "alertdialog")
		c.rows += count(e.Role == "row")
		c.items += count(e.Role == "listitem" || e.Role == "option")
		c.headings += count(e.Role == "heading")
		c.texts += count(e.Text != "")
		c.frames += count(e.Frame != "")
	}
	return c
}
