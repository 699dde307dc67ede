package engine

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A Truth is the value of a predicate in an observation. Unreadable is neither true nor false and
// never proves anything.
type Truth int

// The three truths.
const (
	Unreadable Truth = iota
	False
	True
)

// A Scene is what predicates are evaluated in: one look and what preceded it. Sealed values are
// masked already (Mask), so the predicate of a sealed fill compares its handle.
type Scene struct {
	Now *Look
	// Before is the look that preceded the dispatch. If it is nil, Now is the first look and
	// nothing can have changed yet.
	Before *Look
	// Happened is what happened on the tab since the dispatch.
	Happened page.Happened
	// Restless lists the kinds of change that the page makes by itself, and which therefore prove
	// nothing.
	Restless []string
	// Self is the action's element, to which predicates without a target apply. Target describes
	// it, in case its node is gone.
	Self   page.Ref
	Target *Target

	Identity *Identity
}

// A Verdict is the truth of a predicate and of its parts.
type Verdict struct {
	Truth Truth
	Of    []*Verdict

	leaf     *Observed // nil for all, any and not
	kind     string
	readable bool // some element exposes what a leaf asks for
	absent   bool // no element matches
	waves    int  // of the elements that a leaf is about
	changed  bool // one of them changed since the look before
	working  bool // one of them is working (page.Node.Working)
}

// Changed reports whether an element that v is about changed since the look before.
func (v *Verdict) Changed() bool {
	return v.changed || slices.ContainsFunc(v.Of, (*Verdict).Changed)
}

// Working reports whether an element that v is about is in the middle of something (page.Node).
func (v *Verdict) Working() bool {
	return v.working || slices.ContainsFunc(v.Of, (*Verdict).Working)
}

// Waves returns how often the elements that v is about changed and changed back (page.Node.Waves).
func (v *Verdict) Waves() int {
	n := v.waves
	for _, of := range v.Of {
		n += of.Waves()
	}
	return n
}

// Evaluate evaluates p now. One look serves all of its parts.
func (s *Scene) Evaluate(p *Predicate) *Verdict {
	v := &Verdict{kind: p.Kind}
	switch p.Kind {
	case "all", "any", "not":
		for i := range p.Of {
			v.Of = append(v.Of, s.Evaluate(&p.Of[i]))
		}
		v.Truth = combine(p.Kind, v.Of)
	default:
		s.evaluateLeaf(p, v)
	}
	return v
}

// combine is three-valued logic: readable parts decide where they can.
func combine(kind string, of []*Verdict) Truth {
	switch kind {
	case "not":
		if len(of) != 1 {
			return Unreadable
		}
		return [...]Truth{Unreadable: Unreadable, False: True, True: False}[of[0].Truth]
	case "any":
		return decide(of, True, False)
	}
	return decide(of, False, True)
}

// decide returns strong if one verdict is strong, otherwise Unreadable if one is, otherwise weak.
func decide(of []*Verdict, strong, weak Truth) Truth {
	out := weak
	for _, v := range of {
		switch v.Truth {
		case strong:
			return strong
		case Unreadable:
			out = Unreadable
		}
	}
	if len(of) == 0 {
		return Unreadable
	}
	return out
}

// Turned reports whether v proves a change since before, the verdict on the same predicate in the
// read that preceded the dispatch: it holds, and at least one of the predicates that make it hold
// did not hold before. Under any, that must be the satisfied member itself.
func (v *Verdict) Turned(before *Verdict) bool {
	switch {
	case v.Truth != True:
		return false
	case before == nil:
		return true
	case v.kind == "not" || v.leaf != nil:
		return before.Truth != True
	}
	for i := range v.Of {
		if i < len(before.Of) && v.Of[i].Turned(before.Of[i]) {
			return true
		}
	}
	return false
}

// Ambiguous reports whether v is undecided because no element exposes what any part of it asks for.
func (v *Verdict) Ambiguous() bool { return v.Truth == Unreadable && !v.anyReadable() }

func (v *Verdict) anyReadable() bool {
	if v.leaf != nil {
		return v.readable
	}
	for _, o := range v.Of {
		if o.anyReadable() {
			return true
		}
	}
	return false
}

// Absent reports whether a predicate that does not hold is about a missing element.
func (v *Verdict) Absent() bool {
	if v.Truth == True {
		return false
	}
	if v.leaf != nil {
		return v.absent
	}
	for _, o := range v.Of {
		if o.Absent() {
			return true
		}
	}
	return false
}

// Observed returns what each part saw, in request order. before is nil if there was no earlier
// read.
func (v *Verdict) Observed(before *Verdict) []Observed {
	if v.leaf != nil {
		o := *v.leaf
		if before != nil && before.Truth != Unreadable {
			held := before.Truth == True
			o.Before = &held
		}
		return []Observed{o}
	}
	out := []Observed{}
	for i, of := range v.Of {
		var b *Verdict
		if before != nil && i < len(before.Of) {
			b = before.Of[i]
		}
		out = append(out, of.Observed(b)...)
	}
	return out
}

var (
	// fleeting lists the kinds that are not claimed after they held: they are about a moment, or
	// change by what follows.
	fleeting = []string{
		"navigation", "any_change", "fingerprint", "download", "scrolled", "hovered", "focused", "in_viewport",
		"url", "title", "files",
	}
	// ofControl lists the kinds that are about the content of a control.
	ofControl = []string{"value", "text_value", "checked", "selected"}
)

// Fleeting reports whether no part of a delta lasts.
func Fleeting(p *Predicate) bool {
	if len(p.Of) == 0 {
		return slices.Contains(fleeting, p.Kind)
	}
	return !slices.ContainsFunc(p.Of, func(of Predicate) bool { return !Fleeting(&of) })
}

// OfControl reports whether a delta is entirely about the content of controls. The selection of an
// option or a tab does not count, since selecting another one ends it.
func OfControl(p *Predicate) bool {
	if len(p.Of) == 0 {
		return slices.Contains(ofControl, p.Kind) && !(p.Kind == "selected" && p.Bool != nil)
	}
	return p.Kind == "all" && !slices.ContainsFunc(p.Of, func(of Predicate) bool { return !OfControl(&of) })
}

// About reports whether a delta is about target t, or names none.
func About(p *Predicate, t *Target) bool {
	if len(p.Of) > 0 {
		return !slices.ContainsFunc(p.Of, func(of Predicate) bool { return !About(&of, t) })
	}
	return p.Target == nil || reflect.DeepEqual(p.Target, t)
}

// Lapsed reports whether v, the current verdict on a proved delta, shows that the change was
// undone. was is the verdict before the action; back says that the page looks as it did then, a
// moment after the proof. The content of a control has to stay. A text that is as before was
// undone; one that is different has moved on. A missing element proves nothing unless back is true,
// since notices disappear and pages are redrawn.
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
