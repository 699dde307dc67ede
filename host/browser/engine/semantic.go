package engine

import (
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A shape is a row of the table in section 5.5.
type shape struct {
	role       string
	shape      string
	actions    []string
	adjustable bool
	reason     string
}

var (
	slider     = shape{"slider", "continuous", []string{"adjust"}, true, "range input or slider role"}
	stepper    = shape{"stepper", "discrete", []string{"increment", "decrement"}, true, "number input or spinbutton role"}
	dropdown   = shape{"dropdown", "semantic", []string{"select"}, false, "select element, combobox or listbox role"}
	segmented  = shape{"segmented_control", "discrete", []string{"click"}, false, "one of several toggles is chosen"}
	adjustable = shape{"custom_adjustable", "continuous", []string{"adjust"}, true, "focusable with a value and its bounds"}
)

// containers are roles of elements that hold others.
var containers = []string{
	"article", "banner", "complementary", "contentinfo", "dialog", "feed", "figure", "form", "grid", "group", "list", "listbox", "main", "menu",
	"menubar", "navigation", "radiogroup", "region", "rowgroup", "search", "table", "tablist", "toolbar", "tree",
}

// Semantic is what n seems to be, by fixed rules and for ranking and planning only
// (B128, B140). It is nil where the signs are weak or contradict each other.
func (l *Look) Semantic(n *page.Node) *Semantic {
	s := &Semantic{Clickable: owns(n) || n.OwnHear, Container: slices.Contains(containers, n.Role)}
	if n.Role == "progressbar" || n.Role == "meter" || n.Tag == "progress" || n.Tag == "meter" {
		no := false
		s.Adjustable, s.Confidence, s.Reason = &no, "high", "it shows a value and takes none"
		return s
	}
	kinds := kindsOf(n)
	if len(kinds) > 1 {
		return nil
	}
	if len(kinds) == 1 {
		return as(s, kinds[0], "high")
	}
	if l.segments(n) {
		return as(s, segmented, "medium")
	}
	if (n.Tabbable || n.Native) && n.State.Value != nil && n.State.Range != nil {
		return as(s, adjustable, "medium")
	}
	if actions := l.parts(n); actions != nil {
		return as(s, shape{"composite_control", "semantic", actions, false, "one labelled group of several controls"}, "low")
	}
	switch {
	case n.Native || slices.Contains(interactive, n.Role):
		s.Confidence, s.Reason = "high", "native control or interactive role"
	case s.Clickable:
		s.Confidence, s.Reason = "medium", "it can be focused or listens"
	case s.Container:
		s.Confidence, s.Reason = "high", "its role holds others"
	default:
		return nil
	}
	return s
}

// as makes s a control of a kind.
func as(s *Semantic, k shape, confidence string) *Semantic {
	yes := k.adjustable
	s.Role, s.Shape, s.Actions, s.Adjustable, s.Confidence, s.Reason = k.role, k.shape, k.actions, &yes, confidence, k.reason
	return s
}

// kindsOf are the kinds that the element's own tag and role name: more than one is a
// contradiction.
func kindsOf(n *page.Node) []shape {
	var out []shape
	for _, k := range []struct {
		on bool
		is shape
	}{
		{n.Tag == "input" && n.Type == "range" || n.Role == "slider", slider},
		{n.Tag == "input" && n.Type == "number" || n.Role == "spinbutton", stepper},
		{n.Tag == "select" || n.Role == "combobox" || n.Role == "listbox", dropdown},
		{n.Role == "radiogroup" || n.Role == "tablist", segmented},
	} {
		if k.on {
			out = append(out, k.is)
		}
	}
	return out
}

// segments reports whether two or more toggles lie right below n, one of them chosen.
func (l *Look) segments(n *page.Node) bool {
	toggles, chosen := 0, 0
	for _, i := range l.tree.children[l.at[n.Ref]] {
		if on, is := toggled(&l.Nodes[i]); is {
			toggles++
			if on {
				chosen++
			}
		}
	}
	return toggles >= 2 && chosen == 1
}

func toggled(n *page.Node) (on, is bool) {
	for _, b := range []*bool{n.State.Checked, n.State.Chosen} {
		if b != nil {
			return *b, true
		}
	}
	return false, false
}

// maxParts is how many nodes of a group are looked at.
const maxParts = 64

// parts are the actions of a labelled group that holds two or more controls; nil for
// anything else.
func (l *Look) parts(n *page.Node) []string {
	if n.Role != "group" && n.Tag != "fieldset" || n.Name == "" {
		return nil
	}
	var actions []string
	count := 0
	for _, i := range l.tree.below(l.at[n.Ref], maxParts) {
		kinds := kindsOf(&l.Nodes[i])
		if len(kinds) != 1 {
			continue
		}
		count++
		for _, a := range kinds[0].actions {
			if !slices.Contains(actions, a) {
				actions = append(actions, a)
			}
		}
	}
	if count < 2 {
		return nil
	}
	return actions
}
