package engine

import (
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Bounds of press.
const (
	maxChords  = 64
	maxPresses = 100
)

// harmless reports whether a chord neither changes nor copies text.
func harmless(text string) bool {
	c, err := page.ParseChord(text)
	switch {
	case err != nil:
		return false
	case c.Key.Code == "Tab":
		return c.Plain(page.Shift)
	}
	return c.Plain(0) && (c.Key.Moves || c.Key.Code == "Enter")
}

// spells refuses keys that could reveal a sealed value. Its field reads as a handle, but pieces of
// the value that are copied elsewhere, or repeated by the page, do not. Clear and type replace the
// value as a whole.
func (a *act) spells() *Refusal {
	if a.req.Verb != Press || !a.holdsSealed() {
		return nil
	}
	chords := a.req.Press.Chords
	if !slices.ContainsFunc(chords, func(c string) bool { return !harmless(c) }) {
		return nil
	}
	if len(chords) == 1 && !a.focusSealed() {
		return nil
	}
	return &Refusal{Code: "sealed_placement_denied",
		Message: "keys that edit or copy are not sent to a field that holds a secret; clear it first", Verb: a.req.Verb}
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

// focusSealed reports whether the keys go, or may go, to such a field: each document of a tab can
// have a focused field.
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
