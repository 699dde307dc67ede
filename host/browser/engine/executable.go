package engine

import (
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// interactive are the roles that promise to answer to a pointer or a key.
var interactive = []string{
	"button", "checkbox", "combobox", "gridcell", "link", "listbox", "menuitem", "menuitemcheckbox", "menuitemradio",
	"option", "radio", "scrollbar", "searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "treeitem",
}

// Executable reports whether n can be a target at all. It is what the page says of
// itself, and nothing more.
func Executable(n *page.Node) bool { return owns(n) || n.OwnHear || n.Listens || n.Cursor }

// owns reports whether n answers by itself: it is a control, says it is one, can be
// focused, or labels one.
func owns(n *page.Node) bool {
	return n.Native || n.Tabbable || n.Labels != "" || slices.Contains(interactive, n.Role)
}

// passiveTarget reports the verbs that need no element that answers: the browser scrolls
// to, and the pointer rests on, anything that is seen.
func passiveTarget(v Verb) bool {
	return v == Scroll || v == Hover || v == Drag
}

// owner is the element that acts when n is clicked, and why it was chosen. It
// is nil for one that is passive and within nothing that acts, and for the label of
// something that does not act.
func (l *Look) owner(n *page.Node) (*page.Node, string) {
	const climbed = "clickable_parent_preferred"
	if o := l.climb(n); o != nil {
		c := l.control(o)
		switch {
		case c != nil && (!Executable(c) || l.control(c) != nil):
			return nil, ""
		case c != nil:
			return c, climbed
		case o != n:
			return o, climbed
		}
		return n, ""
	}
	if c := l.pointed(n); c != nil {
		return c, climbed
	}
	return nil, ""
}

// control is what a pure label stands for; nil when n is more than that or its
// control is not in the look.
func (l *Look) control(n *page.Node) *page.Node {
	if n.Labels == "" || n.Native || slices.Contains(interactive, n.Role) {
		return nil
	}
	return l.Node(n.Labels)
}

// labelFor is a label that is seen, of a control that is not; nil for none. Pages draw
// their own boxes that way: the label is what a person clicks.
func (l *Look) labelFor(control *page.Node) *page.Node {
	if seen(control) {
		return nil
	}
	for i := range l.Nodes {
		if n := &l.Nodes[i]; n.Labels == control.Ref && n.Ref != control.Ref && seen(n) {
			return n
		}
	}
	return nil
}

// climb is n or its nearest ancestor that owns the action.
func (l *Look) climb(n *page.Node) *page.Node {
	for o, steps := n, 0; o != nil && steps <= maxClimb; o, steps = l.up(o), steps+1 {
		if o != n && root(o) {
			return nil
		}
		if owns(o) || o.OwnHear && !l.delegates(o, n) {
			return o
		}
	}
	return nil
}

// root reports an element that holds the whole page: what hears or is focused there
// does so for all of it. A page that is edited as a whole is another matter.
func root(n *page.Node) bool { return (n.Tag == "body" || n.Tag == "html") && !n.Editable }

// delegates reports whether o listens for others too: something else below it acts,
// so its middle is not the place where n would be clicked. Frameworks put one
// listener on the root of a page.
func (l *Look) delegates(o, n *page.Node) bool {
	if o.Ref == n.Ref {
		return false
	}
	oi, ni := l.at[o.Ref], l.at[n.Ref]
	others := l.tree.actors(oi) - count(acts(o))
	if l.tree.inside(ni, oi) {
		between := l.tree.above[ni] - l.tree.above[oi] - count(acts(o))
		others -= l.tree.actors(ni) + between
	}
	return others > 0
}

// pointed is the element without any semantics that a pointer would act on: the
// outermost one that shows the hand, n itself where it hears by inheritance, or the
// smallest box that acts and contains it.
func (l *Look) pointed(n *page.Node) *page.Node {
	if n.Cursor {
		top := n
		for o, steps := l.up(n), 0; o != nil && o.Cursor && steps < maxClimb; o, steps = l.up(o), steps+1 {
			top = o
		}
		return top
	}
	if n.Listens {
		return n
	}
	var best *page.Node
	for i := range l.Nodes {
		m := &l.Nodes[i]
		if m.Ref == n.Ref || m.Frame != n.Frame || !m.Visible || root(m) || !Executable(m) || !contains(m.Bounds, n.Bounds) {
			continue
		}
		if (m.OwnHear || m.Listens) && !owns(m) && l.delegates(m, n) {
			continue
		}
		if best == nil || area(m.Bounds) < area(best.Bounds) {
			best = m
		}
	}
	return best
}

func contains(outer, inner page.Box) bool {
	return !inner.Empty() && outer.X <= inner.X && outer.Y <= inner.Y && outer.X+outer.W >= inner.X+inner.W && outer.Y+outer.H >= inner.Y+inner.H
}

func area(b page.Box) float64 { return b.W * b.H }
