package engine

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

var (
	decimal = regexp.MustCompile(`^[+-]?[0-9][0-9,]*(\.[0-9]*)?$|^[+-]?\.[0-9]+$`)
	grouped = regexp.MustCompile(`^[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?$`)
)

// formatted reports whether a field writes what was typed in its own way: without the
// space around it, as the same number, or with signs put between, as in a telephone
// number. Another case is another text. Nothing of what was typed may be missing, and a number has to be
// the same number.
func formatted(typed, have string) bool {
	typed, have = tidy(typed), tidy(have)
	if typed == "" || have == "" {
		return typed == have
	}
	if typed == have {
		return true
	}
	if decimal.MatchString(typed) && decimal.MatchString(have) {
		a, aok := numeric(typed)
		b, bok := numeric(have)
		return aok && bok && a == b
	}
	return spaced(typed, have)
}

func numeric(text string) (float64, bool) {
	if strings.Contains(text, ",") && !grouped.MatchString(text) {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	return f, err == nil
}

// spaced reports whether have is typed with signs put in, none of which is a letter or
// a digit, nor makes a number negative.
func spaced(typed, have string) bool {
	rest := []rune(strings.ReplaceAll(typed, " ", ""))
	for i, r := range have {
		switch {
		case len(rest) > 0 && r == rest[0]:
			rest = rest[1:]
		case unicode.IsLetter(r), unicode.IsDigit(r), i == 0 && (r == '-' || r == '\u2212'):
			return false
		}
	}
	return len(rest) == 0
}
