package engine

import (
	"net/url"
	"slices"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/browser/page"
)

// typing is what a fill leaves in its field.
type typing struct {
	text   string // never part of a result or a trace
	handle string // of a sealed value
	picker bool   // a field whose value is set as a whole
	node   page.Ref
}

// pickers are input types whose value is set, not typed.
var pickers = []string{"date", "datetime-local", "month", "week", "time", "color", "range"}

// fillFits determines the text that the field shall hold, once per field: a second pass has to
// leave the same text, and another field is another decision.
func fillFits(a *act, n *page.Node) *fault {
	picker := n.Tag == "input" && slices.Contains(pickers, n.Type)
	if n.ReadOnly || !n.Editable && !picker {
		return a.reject("readonly")
	}
	if t, ok := a.work.(typing); ok && t.node == n.Ref {
		return nil
	}
	t := typing{text: Typed(a.req, n), picker: picker, node: n.Ref}
	if h := a.req.Type.Sealed; h != "" {
		if picker { // the page would show what it makes of the text
			a.refused = &Refusal{Code: "sealed_placement_denied", Message: "the field is none that a secret may be typed into",
				Verb: a.req.Verb}
			return nil
		}
		if a.opt.Secrets == nil {
			a.refused = &Refusal{Code: "sealed_handle_unknown", Message: "the run holds no sealed values", Verb: a.req.Verb}
			return nil
		}
		t.text, a.refused = a.opt.Secrets.Value(h, origin(a.before.URL), n.Origin, *n)
		if t.handle = h; a.refused != nil {
			return nil
		}
	}
	if a.req.Verb != Clear && !a.req.Type.Clear && n.State.TextValue != nil {
		t.text = *n.State.TextValue + t.text
	}
	a.work = t
	return nil
}

func fillSend(a *act) (page.Delivery, error) {
	t, _ := a.work.(typing)
	node := a.node()
	if t.handle != "" {
		a.remember(a.tab.ID(), node, sealed{handle: t.handle, value: t.text, document: a.before.Document})
		return a.tab.Enter(a.ctx, node, t.text)
	}
	if t.picker {
		return a.tab.Set(a.ctx, node, page.Setting{Text: &t.text})
	}
	if a.req.Type.Keys {
		return a.delivered(a.tab.Keys(a.ctx, node, t.text, true))
	}
	return a.tab.Fill(a.ctx, node, t.text)
}

func fillTell(a *act) {
	t, _ := a.work.(typing)
	if a.req.Verb == Clear {
		a.details["length"] = 0
		return
	}
	if a.details["sealed"] = t.handle != ""; t.handle == "" {
		a.details["length"] = utf8.RuneCountInString(t.text)
	}
}

// origin returns the scheme, host and port of an address, or "null" if it has none.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "null"
	}
	return u.Scheme + "://" + u.Host
}

// A sealed is a sealed value that a field was filled with.
type sealed struct {
	handle   string
	value    string
	document string
	// submitted means that a side effect followed on the same page.
	submitted bool
}

// altered follows a handle when the field's content no longer equals the value. It reveals nothing
// of either.
const altered = " (altered)"

// remember makes a field read as its handle from now on. Refs are never reused (page.Ref), so
// entries of past documents do no harm.
func (e *Engine) remember(tab string, node page.Ref, s sealed) {
	if e.filled[tab] == nil {
		e.filled[tab] = map[page.Ref]sealed{}
	}
	e.filled[tab][node] = s
}

// conceal replaces sealed values by handles before anything else sees an observation. Comparing
// with the handle then compares with the value, inside the host.
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
		Mask(o, v.opt.Secrets.Hide) // what the page wrote elsewhere
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

// covered returns the fields of the tab that hold sealed values, to be covered in pictures.
func (v *verb) covered() []page.Ref {
	var refs []page.Ref
	for ref := range v.filled[v.tab.ID()] {
		refs = append(refs, ref)
	}
	return refs
}
