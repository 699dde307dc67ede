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

// Delta is the state change that a request has to cause, and where it comes from: the
// request, or the verb. It is nil for a deferred one. n is the element that the action
// works on as it was before the dispatch, or nil. The predicates of a default have no
// target: they are about Scene.Self.
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

// Own is what the verb of a request changes by itself, beside what the request expects;
// nil where an expectation takes its place.
func Own(r *Request, n *page.Node) *Predicate {
	switch r.Verb {
	case Type, Fill, Clear, Select, Check, Adjust, Scroll:
		return defaultDelta(r, n)
	}
	return nil
}

// navigated holds for a new document, and for a move within one.
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
			return nil // a chooser's input may be nowhere on the page: an expect proves it
		}
		return &Predicate{Kind: "files", Names: fileNames(r.Upload)}
	}
	return nil
}

// Typed is the text that a type or fill sends into n: line breaks are kept in fields
// of many lines, and are blanks in others. A sealed value is for its keeper.
func Typed(r *Request, n *page.Node) string {
	if n == nil || n.Multiline || loose(n) {
		return r.Type.Plain
	}
	return strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ").Replace(r.Type.Plain)
}

// filled is what a field holds after a type: the handle for a sealed value.
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

// Choice is the option that a select means; nil when the control has no such option.
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
	return &Predicate{Kind: "selected"} // an index that there is no option for is never readable
}

func fileNames(files []File) []string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = cmp.Or(f.Name, path.Base(f.Path))
	}
	return names
}

// chosenMany wants all of several options chosen, and no other: by their ids where the
// control has them, since two may have the same label.
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
