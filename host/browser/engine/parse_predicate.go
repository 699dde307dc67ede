package engine

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/browser/page"
)

// Bounds of a delta.
const (
	maxDepth  = 3
	maxLeaves = 16
)

// predicate reads a predicate, nil if it is missing.
func (p *parser) predicate(name string) *Predicate {
	if !p.has(name) {
		return nil
	}
	p.leaves = 0
	return p.delta(p.object, name, p.members[name], 1)
}

// delta reads one predicate or a composition of predicates.
func (p *parser) delta(o object, name string, v strictjson.Value, depth int) *Predicate {
	if !v.Is(strictjson.KindObject) {
		o.wrong("object", name)
		return nil
	}
	if depth > maxDepth {
		o.refuse(name, "predicates lie at most %d deep in each other", maxDepth)
		return nil
	}
	in := newObject(v, o.path+name+".", o.bad)
	parts := 0
	for _, m := range []string{"kind", "all", "any", "not"} {
		if in.has(m) {
			parts++
		}
	}
	if parts != 1 {
		o.refuse(name, "exactly one of kind, all, any, not")
		return nil
	}
	switch {
	case in.has("all"):
		return p.list(in, "all", depth)
	case in.has("any"):
		return p.list(in, "any", depth)
	case in.has("not"):
		if of := p.delta(in, "not", in.members["not"], depth+1); of != nil {
			return &Predicate{Kind: "not", Of: []Predicate{*of}}
		}
		return nil
	}
	if p.leaves++; p.leaves > maxLeaves {
		o.refuse(name, "at most %d predicates", maxLeaves)
		return nil
	}
	return p.leaf(in)
}

func (p *parser) list(in object, name string, depth int) *Predicate {
	out := &Predicate{Kind: name}
	items := in.items(name, maxLeaves)
	if len(items) == 0 {
		in.wrong("array", name)
	}
	for i, v := range items {
		of := p.delta(in, name+"["+strconv.Itoa(i)+"]", v, depth+1)
		if of == nil {
			return nil
		}
		out.Of = append(out.Of, *of)
	}
	return out
}

// leaf reads a single predicate by its kind.
func (p *parser) leaf(in object) *Predicate {
	q := &Predicate{Kind: in.must("kind", maxName)}
	if SourceOf(q.Kind) == "" {
		in.refuse("kind", "there is no predicate %.40q", q.Kind)
		return nil
	}
	q.Target = target(in, "target", 1)
	p.kindMembers(in, q)
	p.needsTarget(in, q)
	return q
}

// aboutPage reports whether a kind of predicate needs no element.
func aboutPage(kind string) bool {
	switch kind {
	case "url", "title", "navigation", "fingerprint", "any_change", "download", "tab":
		return true
	}
	return false
}

// needsTarget refuses a predicate about an element if neither it nor the request names one.
func (p *parser) needsTarget(in object, q *Predicate) {
	if aboutPage(q.Kind) || q.Target != nil || p.r.Target != nil || q.Kind == "scrolled" && p.r.Verb == Scroll {
		return
	}
	in.wrong("object", "target")
}

func (p *parser) kindMembers(in object, q *Predicate) {
	switch q.Kind {
	case "text":
		compared(in, q, "equals", "contains", "matches")
	case "url", "title":
		compared(in, q, "equals", "prefix", "contains", "matches")
	case "attribute":
		q.Attribute = attribute(in, "name")
		compared(in, q, "equals", "prefix", "contains", "matches")
	case "value":
		readValue(in, q)
	case "text_value":
		if q.String = in.textp("equals", maxText); q.String == nil {
			in.wrong("string", "equals")
		}
	case "checked", "expanded", "enabled", "focused":
		if q.Bool = in.flagp("equals"); q.Bool == nil {
			in.wrong("boolean", "equals")
		}
	case "visible", "exists":
		yes := in.flag("equals", true)
		q.Bool = &yes
	case "selected":
		readSelected(in, q)
	case "count":
		q.Op = oneOf(in, "op", "eq", "gte", "lte")
		if n := in.intp("value"); n != nil {
			q.Count = *n
		} else {
			in.wrong("integer", "value")
		}
	case "files":
		if q.Names = in.texts("names", 100, 255); !in.has("names") {
			in.wrong("array", "names")
		}
	case "navigation":
		q.SameDocument = in.flagp("same_document")
	case "fingerprint":
		q.String, q.ChangedFrom = in.textp("equals", maxName), in.text("changed_from", maxName)
		if (q.String == nil) == (q.ChangedFrom == "") {
			in.refuse("equals", "exactly one of equals and changed_from")
		}
	case "any_change":
		q.Kinds = in.words("kinds", "hierarchy_diff", "text_change", "state_change")
	case "download":
		if q.NameMatches = in.text("name_matches", maxExpression); q.NameMatches != "" {
			q.re = expression(in, "name_matches", q.NameMatches)
		}
	}
}

// oneOf reads a required word from a list.
func oneOf(in object, name string, words ...string) string {
	if !in.has(name) {
		in.wrong("string", name)
	}
	return in.word(name, words...)
}

// compared reads op and value. An empty value is allowed.
func compared(in object, q *Predicate, ops ...string) {
	q.Op = oneOf(in, "op", ops...)
	text := in.textp("value", maxText)
	if text == nil {
		in.wrong("string", "value")
		return
	}
	if q.Text = *text; q.Op == "matches" {
		q.re = expression(in, "value", q.Text)
	}
}

func expression(in object, name, text string) *regexp.Regexp {
	re, err := compile(text)
	if err != nil {
		in.refuse(name, "not an RE2 expression of at most %d bytes", maxExpression)
	}
	return re
}

func readValue(in object, q *Predicate) {
	if in.members["equals"].Is(strictjson.KindString) {
		q.String = in.textp("equals", maxText)
	} else if q.Number = in.floatp("equals"); q.Number == nil {
		in.wrong("number", "equals")
	}
	if q.Tolerance = in.float("tolerance", 0); q.Tolerance < 0 {
		in.refuse("tolerance", "not below 0")
	}
}

func readSelected(in object, q *Predicate) {
	switch v := in.members["equals"]; {
	case v.Is(strictjson.KindBool):
		q.Bool = in.flagp("equals")
	case v.Is(strictjson.KindString):
		q.String = in.textp("equals", maxField)
	case v.Is(strictjson.KindObject):
		o, _ := in.object("equals")
		q.Option = &page.Option{ID: o.text("id", maxField), Label: o.text("label", maxField)}
		if !o.has("id") && !o.has("label") {
			in.wrong("object", "equals")
		}
	case v.Is(strictjson.KindArray):
		if q.Names = in.texts("equals", maxChosen, maxField); q.Names == nil {
			q.Names = []string{}
		}
	default:
		in.wrong("object", "equals")
	}
}

// attribute reads the name of an attribute that may be read: not what somebody typed, and not
// script or style.
func attribute(in object, name string) string {
	s := strings.ToLower(in.must(name, maxName))
	for _, c := range s {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.ContainsRune("-_:.", c)) {
			in.wrong("string", name)
			return ""
		}
	}
	if !readable(s) {
		in.refuse(name, "this attribute is not read")
		return ""
	}
	return s
}

// MarshalJSON writes a predicate in the form of requests, to echo a delta.
func (p Predicate) MarshalJSON() ([]byte, error) {
	m := map[string]any{}
	switch p.Kind {
	case "all", "any":
		m[p.Kind] = p.Of
		return json.Marshal(m)
	case "not":
		if len(p.Of) == 1 {
			m["not"] = p.Of[0]
		}
		return json.Marshal(m)
	}
	m["kind"] = p.Kind
	for name, v := range map[string]string{"op": p.Op, "name": p.Attribute, "changed_from": p.ChangedFrom,
		"name_matches": p.NameMatches} {
		if v != "" {
			m[name] = v
		}
	}
	switch p.Kind {
	case "text", "url", "title", "attribute":
		m["value"] = p.Text
	case "count":
		m["value"] = p.Count
	case "files":
		m["names"] = append([]string{}, p.Names...)
	}
	if p.Target != nil {
		m["target"] = p.Target
	}
	if p.Kind == "selected" && p.Names != nil {
		m["equals"] = p.Names
	}
	if v := p.wanted(); v != nil {
		m["equals"] = v
	}
	if p.Tolerance != 0 {
		m["tolerance"] = p.Tolerance
	}
	if p.SameDocument != nil {
		m["same_document"] = *p.SameDocument
	}
	if len(p.Kinds) > 0 {
		m["kinds"] = p.Kinds
	}
	return json.Marshal(m)
}

// wanted returns the member equals, or nil if there is none.
func (p Predicate) wanted() any {
	switch {
	case p.Bool != nil:
		return *p.Bool
	case p.String != nil:
		return *p.String
	case p.Number != nil:
		return *p.Number
	case p.Option != nil:
		return map[string]string{"id": p.Option.ID, "label": p.Option.Label}
	}
	return nil
}

// describe returns a predicate as a guest writes it, null for nil.
func describe(p *Predicate) json.RawMessage {
	raw, err := json.Marshal(p)
	if err != nil {
		return json.RawMessage("null") // a number that JSON does not have
	}
	return raw
}
