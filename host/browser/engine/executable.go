package engine

import (
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// interactive lists the roles that promise to react to a pointer or a key.
var interactive = []string{
	"button", "checkbox", "combobox", "gridcell", "link", "listbox", "menuitem", "menuitemcheckbox", "menuitemradio",
	"option", "radio", "scrollbar", "searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "treeitem",
}

// Executable reports whether n can be a target at all. It relies only on what the page says.
func Executable(n *page.Node) bool { return owns(n) || n.OwnHear || n.Listens || n.Cursor }

// owns reports whether n reacts by itself: it is a control, claims to be one, can be focused, or
// labels one.
func owns(n *page.Node) bool {
	return n.Native || n.Tabbable || n.Labels != "" || slices.Contains(interactive, n.Role)
}

// passiveTarget reports whether a verb works on any visible element, not only on one that reacts.
func passiveTarget(v Verb) bool {
	return v == Scroll || v == Hover || v == Drag
}

// owner returns the element that acts when n is clicked, and why it was chosen. It returns nil for
// a passive element within nothing that acts, and for the label of something that does not act.
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

// control returns the control that a pure label stands for. It returns nil if n is more than a
// label or its control is not in the look.
func (l *Look) control(n *page.Node) *page.Node {
	if n.Labels == "" || n.Native || slices.Contains(interactive, n.Role) {
		return nil
	}
	return l.Node(n.Labels)
}

// labelFor returns the visible label of a hidden control, or nil if there is none. Pages draw their
// own check boxes that way, and the label is what a person clicks.
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

// climb returns n or its nearest ancestor that owns the action.
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

// root reports whether n holds the whole page, so that its listeners and focus belong to all of it.
// An editable body is an exception.
func root(n *page.Node) bool { return (n.Tag == "body" || n.Tag == "html") && !n.Editable }

// delegates reports whether o also listens for others: something else below it acts, so its middle
// is not where n would be clicked. Frameworks put one listener on the root of a page.
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

// pointed returns the element without semantics that a pointer would act on: the outermost one with
// a hand cursor, n itself if it inherits a listener, or the smallest acting box that contains it.
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
	return !inner.Empty() && outer.X <= inner.X && outer.Y <= inner.Y && outer.X+outer.W >= inner.X+inner.W &&
		outer.Y+outer.H >= inner.Y+inner.H
}

func area(b page.Box) float64 { return b.W * b.H }
