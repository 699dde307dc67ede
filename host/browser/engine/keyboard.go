package engine

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Bounds of press.
const (
	maxChords  = 64
	maxPresses = 100
)

// namedKeys are those with a name; every other key is one printable character.
var namedKeys = []string{
	"Enter", "Return", "NumpadEnter", "Tab", "Escape", "Esc", "Backspace", "Delete", "Insert", "Space", "Spacebar",
	"Home", "End", "PageUp", "PageDown", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "ContextMenu",
	"F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10",
}

var modifiers = []string{"Alt", "Control", "Meta", "Shift"}

// refusedKeys open developer tools, or work on windows, tabs and the browser itself,
// under any of the modifiers that are listed with them.
var refusedKeys = map[string][]string{
	"Control":       {"N", "T", "W", "Q", "U", "O", "Tab", "F4", "PageUp", "PageDown"},
	"Control+Shift": {"C", "I", "J", "K", "M", "N", "T", "W", "Q", "E", "Delete", "Tab", "PageUp", "PageDown"},
	"Meta":          {"N", "T", "W", "Q", "H", "M", "O", "Tab", "Space"},
	"Meta+Shift":    {"C", "N", "T", "W", "Q"},
	"Alt+Meta":      {"C", "I", "J", "U", "K"},
	"Alt":           {"F4", "Tab", "Space", "Escape"},
	"Alt+Shift":     {"Tab"},
	"Shift":         {"Escape"},
}

// chord checks one chord of press: a problem in words, or "".
func chord(text string) string {
	parts := splitChord(text)
	if len(parts) == 0 {
		return "an empty chord"
	}
	key, held := parts[len(parts)-1], slices.Clone(parts[:len(parts)-1])
	slices.Sort(held)
	for i, m := range held {
		if !slices.Contains(modifiers, m) || i > 0 && held[i-1] == m {
			return "modifiers are Alt, Control, Meta and Shift, each once"
		}
	}
	if r, n := utf8.DecodeRuneInString(key); !slices.Contains(namedKeys, key) && (n != len(key) || !unicode.IsPrint(r)) {
		return "unknown key"
	}
	if slices.Contains(refusedKeys[strings.Join(held, "+")], upper(key)) {
		return "this chord is the browser's own: a page does not get it"
	}
	return ""
}

// upper makes one form of letters, which a chord may write either way.
func upper(key string) string {
	if len(key) == 1 {
		return strings.ToUpper(key)
	}
	return key
}

// harmless are the chords that neither change a text nor copy a part of it.
var harmless = []string{
	"Enter", "Return", "NumpadEnter", "Tab", "Shift+Tab", "Escape", "Esc", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown",
}

// spells refuses keys that would spell out a sealed value: a field that holds one
// reads as its handle, but pieces of it that are copied elsewhere, or left over by a
// page that repeats what is in the field, do not. Clear and type replace it
// whole.
func (a *act) spells() *Refusal {
	if a.req.Verb != Press || !a.holdsSealed() {
		return nil
	}
	chords := a.req.Press.Chords
	if !slices.ContainsFunc(chords, func(c string) bool { return !slices.Contains(harmless, c) }) {
		return nil
	}
	if len(chords) == 1 && !a.focusSealed() {
		return nil
	}
	return &Refusal{Code: "sealed_placement_denied", Message: "keys that edit or copy are not sent to a field that holds a secret; clear it first", Verb: a.req.Verb}
}

// holdsSealed reports whether a field of the document was filled with a sealed value.
func (a *act) holdsSealed() bool {
	for _, s := range a.filled[a.tab.ID()] {
		if s.document == a.tab.Facts().Document {
			return true
		}
	}
	return false
}

// focusSealed reports whether the keys go to such a field, or may go there: several
// documents of a tab can each have a field with the focus.
func (a *act) focusSealed() bool {
	filled := a.filled[a.tab.ID()]
	if a.found != nil {
		_, ok := filled[a.node()]
		return ok
	}
	if _, ok := filled[a.resume]; ok {
		return true
	}
	l := a.lastLook()
	return l == nil || slices.ContainsFunc(l.Nodes, func(n page.Node) bool {
		_, ok := filled[n.Ref]
		return ok && n.State.Focused != nil && *n.State.Focused
	})
}
