package engine

import (
	"cmp"
	"path"
	"strings"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Origins of a delta.
const (
	OriginDeclared = "declared"
	OriginDefault  = "default"
	OriginDeferred = "deferred"
)

// Delta returns the state change that a request has to cause, and its origin: the request or the
// verb. It is nil if it is deferred. n is the element before the dispatch, or nil. Default
// predicates have no target and apply to Scene.Self.
func Delta(r *Request, n *page.Node) (*Predicate, string) {
	if r.Expect != nil {
		if r.Verb != Navigate {
			return r.Expect, OriginDeclared
		}
		both := Predicate{Kind: "all", Of: []Predicate{navigated(), *r.Expect}}
		return &both, OriginDeclared
	}
	p := defaultDelta(r, n)
	if p == nil {
		return nil, OriginDeferred
	}
	return p, OriginDefault
}

// Own returns the change that a verb makes by itself, beside what the request expects, or nil if
// the verb has none.
func Own(r *Request, n *page.Node) *Predicate {
	switch r.Verb {
	case Type, Fill, Clear, Select, Check, Adjust, Scroll:
		return defaultDelta(r, n)
	}
	return nil
}

// navigated holds after a new document and after a move within one.
func navigated() Predicate {
	yes := true
	return Predicate{Kind: "any", Of: []Predicate{{Kind: "navigation"}, {Kind: "navigation", SameDocument: &yes}}}
}

func defaultDelta(r *Request, n *page.Node) *Predicate {
	yes := true
	switch r.Verb {
	case Navigate:
		p := navigated()
		return &p
	case Type, Fill:
		want := filled(r, n)
		return &Predicate{Kind: "text_value", String: &want, Formatted: r.Type.Sealed == ""}
	case Clear:
		empty := ""
		return &Predicate{Kind: "text_value", String: &empty}
	case Select:
		return chosenDelta(r.Select, n)
	case Check:
		return &Predicate{Kind: "checked", Bool: &r.Check}
	case Adjust:
		return &Predicate{Kind: "value", Number: &r.Adjust.Value, Tolerance: r.Adjust.Tolerance}
	case Scroll:
		if r.Target == nil {
			return &Predicate{Kind: "scrolled"}
		}
		return &Predicate{Kind: "in_viewport", Bool: &yes}
	case Hover:
		return &Predicate{Kind: "hovered", Bool: &yes}
	case Upload:
		if n != nil && n.Type != "file" {
			return nil // a chooser's input may be anywhere; an expect proves it
		}
		return &Predicate{Kind: "files", Names: fileNames(r.Upload)}
	}
	return nil
}

// Typed returns the text that type or fill enters into n. Line breaks are kept in multi-line fields
// and become spaces in others. A sealed value is not resolved here.
func Typed(r *Request, n *page.Node) string {
	if n == nil || n.Multiline || loose(n) {
		return r.Type.Plain
	}
	return strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ").Replace(r.Type.Plain)
}

// filled returns what a field holds after a type; for a sealed value that is its handle.
func filled(r *Request, n *page.Node) string {
	if r.Type.Sealed != "" {
		return r.Type.Sealed
	}
	text := Typed(r, n)
	if !r.Type.Clear && n != nil && n.State.TextValue != nil {
		text = *n.State.TextValue + text
	}
	return text
}

// Choice returns the option that a select means, or nil if the control does not have it.
func Choice(a SelectArgs, n *page.Node) *page.Option {
	for i := range n.Options {
		o := &n.Options[i]
		switch {
		case a.Index != nil && *a.Index == i, a.ID != nil && *a.ID == o.ID:
			return o
		case a.Label != nil && fold(*a.Label) == fold(o.Label):
			return o
		}
	}
	return nil
}

func chosenDelta(a SelectArgs, n *page.Node) *Predicate {
	if a.Many != nil {
		return chosenMany(a.Many, n)
	}
	if n != nil {
		if o := Choice(a, n); o != nil {
			return &Predicate{Kind: "selected", Option: &page.Option{ID: o.ID, Label: o.Label}}
		}
	}
	switch {
	case a.ID != nil:
		return &Predicate{Kind: "selected", Option: &page.Option{ID: *a.ID}}
	case a.Label != nil:
		return &Predicate{Kind: "selected", Option: &page.Option{Label: *a.Label}}
	}
	return &Predicate{Kind: "selected"} // no such option: never readable
}

func fileNames(files []File) []string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = cmp.Or(f.Name, path.Base(f.Path))
	}
	return names
}

// chosenMany requires exactly these options to be chosen. They are identified by id where the
// control has ids, since two may share a label.
func chosenMany(list []SelectArgs, n *page.Node) *Predicate {
	p := &Predicate{Kind: "selected", Names: []string{}}
	for _, a := range list {
		if n == nil {
			break
		}
		if o := Choice(a, n); o != nil && o.ID != "" {
			p.Names = append(p.Names, o.ID)
		} else if o != nil {
			p.Names = append(p.Names, o.Label)
		}
	}
	return p
}
