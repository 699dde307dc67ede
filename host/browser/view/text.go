package view

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean is a text of the page's as it is shown to the owner: without controls and
// marks that reorder it, of at most so many bytes.
func clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// toValid is text as JSON takes it.
func toValid(s string) string { return strings.ToValidUTF8(s, "") }
