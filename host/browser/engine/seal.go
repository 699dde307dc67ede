package engine

import (
	"github.com/sluicehost/sluice/host/browser/page"
)

// A sealed is what a field was filled with (B39).
type sealed struct {
	handle   string
	value    string
	document string
	// submitted: a side effect came after it on its page (B41).
	submitted bool
}

// altered follows a handle when the field holds something else than its value by
// now: it says that much and nothing of either.
const altered = " (altered)"

// remember has a field read as its handle from now on. A ref is never used again,
// so that of a document which is gone does no harm (page.Ref).
func (e *Engine) remember(tab string, node page.Ref, s sealed) {
	if e.filled[tab] == nil {
		e.filled[tab] = map[page.Ref]sealed{}
	}
	e.filled[tab][node] = s
}

// conceal puts handles in the place of sealed values before anything else sees an
// observation. Comparison with the handle then is comparison with the value, made
// inside of the host (B39).
func (v *verb) conceal(o *page.Observation) {
	filled := v.filled[v.tab.ID()]
	for i := range o.Nodes {
		n := &o.Nodes[i]
		if s, ok := filled[n.Ref]; ok {
			hide(&n.State.TextValue, s)
			hide(&n.State.RawValue, s)
			n.Text, n.Name = masked(n.Text, s), masked(n.Name, s)
			n.State.Value, n.Options, n.State.Selected = nil, nil, nil
		}
	}
	if v.opt.Secrets != nil {
		Mask(o, v.opt.Secrets.Hide) // what a page wrote elsewhere
	}
}

func hide(text **string, s sealed) {
	if *text == nil {
		return
	}
	shown := s.handle
	switch **text {
	case s.value:
	case "":
		shown = ""
	default:
		shown += altered
	}
	*text = &shown
}

func masked(text string, s sealed) string {
	if text == s.value {
		return s.handle
	}
	return text
}

// covered are the fields of the tab that hold sealed values, for pictures (B33).
func (v *verb) covered() []page.Ref {
	var refs []page.Ref
	for ref := range v.filled[v.tab.ID()] {
		refs = append(refs, ref)
	}
	return refs
}
