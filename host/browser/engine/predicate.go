package engine

import (
	"regexp"
	"strings"
)

// The four sources of verification (section 2.2).
const (
	FromElement    = "element_property"
	FromValue      = "value_update"
	FromNavigation = "navigation"
	FromDiff       = "ui_state_diff"
)

// predicateSources are the predicates of section 2.2 with their source.
var predicateSources = map[string]string{
	"text": FromElement, "value": FromValue, "text_value": FromValue,
	"checked": FromElement, "expanded": FromElement, "enabled": FromElement, "focused": FromElement, "selected": FromElement,
	"visible": FromElement, "exists": FromElement, "in_viewport": FromElement, "hovered": FromElement, "scrolled": FromElement,
	"count": FromElement, "attribute": FromElement, "files": FromValue,
	"url": FromNavigation, "title": FromNavigation, "navigation": FromNavigation,
	"fingerprint": FromDiff, "any_change": FromDiff, "download": FromDiff, "tab": FromDiff,
}

// SourceOf is the verification source of a kind of predicate, or "".
func SourceOf(kind string) string { return predicateSources[kind] }

// Compare reports whether a text satisfies Op and Text. White space is collapsed, and
// case counts for matches alone, which sees the text as it is: style sheets write in
// capitals what the page does not. Addresses are compared as they are written.
func (p *Predicate) Compare(have string) bool {
	if p.Op == "matches" {
		re := p.expression(p.Text)
		return re != nil && re.MatchString(have)
	}
	want := p.Text
	if p.Kind != "url" && p.Kind != "attribute" {
		have, want = plain(have), plain(want)
	}
	switch p.Op {
	case "equals":
		return have == want
	case "contains":
		return strings.Contains(have, want)
	case "prefix":
		return strings.HasPrefix(have, want)
	}
	return false
}

// Named reports whether a file name satisfies NameMatches; an empty one takes all.
func (p *Predicate) Named(name string) bool {
	if p.NameMatches == "" {
		return true
	}
	re := p.expression(p.NameMatches)
	return re != nil && re.MatchString(name)
}

// expression is the compiled form, made by Parse; one that was not parsed is compiled
// here, and nil if it is no expression.
func (p *Predicate) expression(text string) *regexp.Regexp {
	if p.re != nil {
		return p.re
	}
	re, err := compile(text)
	if err != nil {
		return nil
	}
	return re
}

func plain(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }
