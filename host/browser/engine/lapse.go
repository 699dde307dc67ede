package engine

import (
	"bytes"
	"reflect"
	"slices"
)

var (
	// fleeting are the kinds of which nothing is claimed once they were seen: they are
	// about a moment, or change by what comes next.
	fleeting = []string{
		"navigation", "any_change", "fingerprint", "download", "scrolled", "hovered", "focused", "in_viewport", "url", "title", "files",
	}
	// ofControl are the kinds about what a control holds.
	ofControl = []string{"value", "text_value", "checked", "selected"}
)

// Fleeting reports whether nothing of a delta lasts.
func Fleeting(p *Predicate) bool {
	if len(p.Of) == 0 {
		return slices.Contains(fleeting, p.Kind)
	}
	return !slices.ContainsFunc(p.Of, func(of Predicate) bool { return !Fleeting(&of) })
}

// OfControl reports whether all of a delta is about what controls hold. That of an
// option or a tab is not its own: another one takes it away.
func OfControl(p *Predicate) bool {
	if len(p.Of) == 0 {
		return slices.Contains(ofControl, p.Kind) && !(p.Kind == "selected" && p.Bool != nil)
	}
	return p.Kind == "all" && !slices.ContainsFunc(p.Of, func(of Predicate) bool { return !OfControl(&of) })
}

// About reports whether a delta is about a target, or names none.
func About(p *Predicate, t *Target) bool {
	if len(p.Of) > 0 {
		return !slices.ContainsFunc(p.Of, func(of Predicate) bool { return !About(&of, t) })
	}
	return p.Target == nil || reflect.DeepEqual(p.Target, t)
}

// Lapsed reports whether v, the verdict now on a delta that was proved, says that it was
// taken back; was is the verdict before the action, and back says that the page is what
// it was then, after a moment. What a control holds has to stay. A text that says the
// same as before was taken back; one that says something else has gone on. What is not
// there any more proves nothing, unless the page went back at once: notices go, and
// pages are drawn anew.
func (v *Verdict) Lapsed(was *Verdict, back bool) bool {
	switch {
	case v.Truth == True:
		return false
	case v.leaf != nil:
		return v.leafLapsed(was, back)
	case v.kind != "all":
		return v.Truth == False && back && !v.fleets()
	}
	for i, of := range v.Of {
		var before *Verdict
		if was != nil && i < len(was.Of) {
			before = was.Of[i]
		}
		if of.Lapsed(before, back) {
			return true
		}
	}
	return false
}

func (v *Verdict) leafLapsed(was *Verdict, back bool) bool {
	switch {
	case slices.Contains(fleeting, v.kind):
		return false
	case slices.Contains(ofControl, v.kind):
		return v.Truth == False || back && v.absent
	case v.kind == "text" && v.Truth == False && was != nil && was.leaf != nil && was.Truth == False &&
		len(v.leaf.Value) > len(`""`) && bytes.Equal(v.leaf.Value, was.leaf.Value):
		return true
	}
	return back && (v.Truth == False || v.absent)
}

func (v *Verdict) fleets() bool {
	return slices.Contains(fleeting, v.kind) || slices.ContainsFunc(v.Of, (*Verdict).fleets)
}
