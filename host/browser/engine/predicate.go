package engine

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

// The four verification sources.
const (
	FromElement    = "element_property"
	FromValue      = "value_update"
	FromNavigation = "navigation"
	FromDiff       = "ui_state_diff"
)

// predicateSources maps kinds of predicates to their sources.
var predicateSources = map[string]string{
	"text": FromElement, "value": FromValue, "text_value": FromValue,
	"checked": FromElement, "expanded": FromElement, "enabled": FromElement, "focused": FromElement,
	"selected": FromElement, "visible": FromElement, "exists": FromElement, "in_viewport": FromElement,
	"hovered": FromElement, "scrolled": FromElement, "count": FromElement, "attribute": FromElement, "files": FromValue,
	"url": FromNavigation, "title": FromNavigation, "navigation": FromNavigation,
	"fingerprint": FromDiff, "any_change": FromDiff, "download": FromDiff, "tab": FromDiff,
}

// SourceOf returns the verification source of a kind of predicate, or "" for an unknown kind.
func SourceOf(kind string) string { return predicateSources[kind] }

// Compare reports whether a text satisfies Op and Text. White space is collapsed and case ignored,
// since style sheets capitalise what the page does not; matches sees the text as it is, and
// addresses and attributes are compared exactly.
func (p *Predicate) Compare(have string) bool {
	if p.Op == "matches" {
		re := p.expression(p.Text)
		return re != nil && re.MatchString(have)
	}
	want := p.Text
	if p.Kind != "url" && p.Kind != "attribute" {
		have, want = fold(have), fold(want)
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

// Named reports whether a file name satisfies NameMatches; an empty pattern accepts every name.
func (p *Predicate) Named(name string) bool {
	if p.NameMatches == "" {
		return true
	}
	re := p.expression(p.NameMatches)
	return re != nil && re.MatchString(name)
}

// expression returns the expression compiled by Parse, or compiles text. It returns nil if text is
// not a valid expression.
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

// Bounds of an expression. RE2 is linear in the text; what remains to be bounded is the size of the
// program, which a short pattern such as ((a{99}){99}) can inflate.
const (
	maxExpression = 512
	maxProgram    = 2000 // instructions
)

var errExpression = errors.New("expression is too large")

// compile compiles a guest's expression. No other code does.
func compile(text string) (*regexp.Regexp, error) {
	if len(text) > maxExpression {
		return nil, errExpression
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if expressionSize(tree) > maxProgram {
		return nil, errExpression
	}
	return regexp.Compile(text)
}

// expressionSize estimates the number of instructions of an expression before it is compiled.
func expressionSize(e *syntax.Regexp) int {
	n := 1 + len(e.Rune)/2
	for _, sub := range e.Sub {
		n += expressionSize(sub)
		if n > maxProgram {
			return n
		}
	}
	if e.Op == syntax.OpRepeat {
		n *= max(e.Max, e.Min, 1) + 1
	}
	return min(n, maxProgram+1)
}
