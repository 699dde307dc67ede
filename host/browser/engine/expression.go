package engine

import (
	"errors"
	"regexp"
	"regexp/syntax"
)

// Bounds of an expression (B19). RE2 takes linear time in the text; what is left to
// bound is how large a program a short text makes, as ((a{99}){99}) does.
const (
	maxExpression = 512
	maxProgram    = 2000 // instructions
)

var errExpression = errors.New("expression is too large")

// compile is the only way to an expression of a guest's.
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

// expressionSize is about how many instructions an expression makes; it is computed before
// any are.
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
