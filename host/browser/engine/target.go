package engine

import (
	"strings"

	"github.com/sluicehost/sluice/host/browser/page"
)

// maxNesting of targets in within and near.
const maxNesting = 3

// target reads a target of the request; nil when it is missing (B16).
func target(o object, name string, depth int) *Target {
	in, ok := o.object(name)
	if !ok {
		return nil
	}
	if depth > maxNesting {
		o.refuse(name, "targets lie at most %d deep in each other", maxNesting)
		return nil
	}
	switch byID, bySelector := in.has("element_id"), in.has("selector"); {
	case byID && bySelector:
		o.refuse(name, "element_id or selector, not both")
	case byID:
		return &Target{ElementID: in.must("element_id", maxName)}
	case bySelector:
		return &Target{Selector: selector(in, depth)}
	default:
		o.bad.set("INVALID_SELECTOR", "%s: an element_id or a selector is needed", o.path+name)
	}
	return nil
}

func selector(o object, depth int) *Selector {
	in, ok := o.object("selector")
	if !ok {
		return nil
	}
	s := &Selector{Selector: page.Selector{
		TestID: usable(in, "test_id"), ID: usable(in, "id"), Role: usable(in, "role"), Name: usable(in, "name"), Label: usable(in, "label"),
		Text: usable(in, "text"), Placeholder: usable(in, "placeholder"), CSS: in.text("css", maxCSS), Query: usable(in, "query"),
	}}
	if strings.TrimSpace(s.CSS) == "" {
		s.CSS = ""
	}
	if cssReads(s.CSS) {
		in.refuse("css", "it asks for an attribute that is not read")
	}
	s.Exact, s.Contains, s.Frame = in.flagp("exact"), usable(in, "contains"), in.text("frame", maxName)
	if s.Index = in.intp("index"); s.Index != nil && *s.Index > maxCandidates {
		in.refuse("index", "at most %d", maxCandidates)
	}
	s.Within, s.Near = target(in, "within", depth+1), target(in, "near", depth+1)
	if s.Selector == (page.Selector{}) {
		o.bad.set("INVALID_SELECTOR", "%sselector: one of test_id, id, role, name, label, text, placeholder, css, query is needed", o.path)
	}
	return s
}

// usable is a text that may be matched: a blank one says nothing.
func usable(o object, name string) string {
	s := o.text(name, maxField)
	if strings.TrimSpace(s) == "" {
		return ""
	}
	return s
}
