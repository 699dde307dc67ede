package engine

import (
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A Truth is what an observation says of a predicate. Unreadable is neither of the
// others and never proves anything (B84).
type Truth int

// The three truths.
const (
	Unreadable Truth = iota
	False
	True
)

// A Scene is what predicates are evaluated in: one look, and what came before it.
// Sealed values are masked before (Mask): the predicate of a sealed fill compares its
// handle.
type Scene struct {
	Now *Look
	// Before is the look that preceded the dispatch; nil means that Now is the first
	// one, in which nothing can have changed yet.
	Before *Look
	// Happened is what the tab went through since the dispatch.
	Happened page.Happened
	// Restless are the kinds in which the page changes by itself, where a change proves
	// nothing.
	Restless []string
	// Self is the element of the action, meant by predicates without a target;
	// Target describes it, for when its node is gone.
	Self   page.Ref
	Target *Target

	Identity *Identity
}

// A Verdict is the truth of a predicate, and of those that it is made of.
type Verdict struct {
	Truth Truth
	Of    []*Verdict

	leaf     *Observed // nil for all, any and not
	kind     string
	readable bool // some element shows what a leaf asks for
	absent   bool // no element matches
	waves    int  // of the elements that a leaf is about
	changed  bool // one of them did since the look before
	working  bool // one of them is, as page.Node.Working says
}

// Changed reports whether an element that v is about says something else than at the
// look before, Working whether one is in the middle of something (page.Node).
func (v *Verdict) Changed() bool {
	return v.changed || slices.ContainsFunc(v.Of, (*Verdict).Changed)
}

// Working is as Changed.
func (v *Verdict) Working() bool {
	return v.working || slices.ContainsFunc(v.Of, (*Verdict).Working)
}

// Waves is how often what v is about has gone and come back (page.Node.Waves).
func (v *Verdict) Waves() int {
	n := v.waves
	for _, of := range v.Of {
		n += of.Waves()
	}
	return n
}

// Evaluate says whether p holds now. One look serves all of its parts (B69).
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

// combine is three-valued logic: what could be read decides where it can.
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

// decide is strong if one is strong, unreadable if one is, else weak.
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

// Turned reports whether v proves a change since before, the verdict on the same
// predicate in the read that preceded the dispatch: it holds, and at least one of
// the predicates that make it hold did not (B20). Under any that is the satisfied
// member itself.
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

// Ambiguous reports whether nothing of the predicate can be computed: it is not
// decided, and no element shows what any part of it asks for (B60).
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

// Absent reports whether a predicate that does not hold asks for an element that is
// not there (B75).
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

// Observed is what each part saw, in the order of the request. before is nil where
// there was no earlier read.
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
