package engine

import (
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// leave takes the focus out of a control that was worked: only then do many pages
// check, format and save what was entered, and the proof has to come after that. A
// control that is gone by then needs no leaving; one that hangs shows in the proof.
func (a *act) leave() {
	if !a.kind.leaves || a.found == nil || a.asks("focused", a.delta) {
		return
	}
	a.worked[a.tab.ID()] = a.node()
	_ = a.tab.Leave(a.ctx, a.node())
}

// asks reports a delta that has a part of a kind.
func (a *act) asks(kind string, p *Predicate) bool {
	return p != nil && (p.Kind == kind || slices.ContainsFunc(p.Of, func(of Predicate) bool { return a.asks(kind, &of) }))
}

// resumed is the control that keys go to when nothing has the focus: the one that was
// worked last, and left by this engine alone.
func (a *act) resumed(l *Look) *page.Node {
	n := l.Node(a.worked[a.tab.ID()])
	if n == nil || !n.Visible {
		return nil
	}
	a.resume = n.Ref
	return n
}
