package view

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/browser/page"
)

const (
	alt     = 1
	control = 2
	meta    = 4
	shift   = 8
)

// named are the keys with a name that go to the page (B224).
var named = []string{"Enter", "Tab", "Escape", "Backspace", "Delete", "ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown",
	"Home", "End", "PageUp", "PageDown", "Shift", "Control", "Alt", "Meta"}

// chords are the letters that go to it with Control or Meta. What opens a tool or
// a window of the browser, or its clipboard, does not (B225, B231).
const chords = "abiyz"

// typed reports whether a key goes to the page at all.
func typed(in page.Input) bool {
	if slices.Contains(named, in.Key) {
		return in.Modifiers&alt == 0 || in.Key != "ArrowLeft" && in.Key != "ArrowRight" && in.Key != "Home"
	}
	r, n := utf8.DecodeRuneInString(in.Key)
	if n != len(in.Key) || !unicode.IsPrint(r) {
		return false
	}
	if in.Modifiers&(control|meta) == 0 || in.Modifiers&(control|alt) == control|alt { // AltGr types
		return true
	}
	letter := unicode.ToLower(r)
	if in.Modifiers&alt != 0 || in.Modifiers&shift != 0 && letter != 'z' {
		return false
	}
	return letter < unicode.MaxASCII && strings.ContainsRune(chords, letter)
}
