package engine

import (
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A Sight is what one look says of the condition of a wait (B148, B152).
type Sight struct {
	Met           bool
	Matched       int
	SelectedIndex *int // of the match that the condition is about; nil for none
	// Found is the element that satisfies the condition, nil for none; Last the last
	// match, whether it satisfies anything or not.
	Found *Found
	Last  *page.Node
}

// Awaits are the conditions that one look can decide; page_change and ui_change take
// several (Turning, Settling).
var Awaits = []string{"exists", "not_exists", "visible", "hidden", "clickable", "load", "navigation"}

// Await says whether the condition of a wait is met in this look.
func (s *Scene) Await(w *WaitArgs, t *Target) Sight {
	switch w.For {
	case "load":
		return Sight{Met: s.Now.Loading == nil || s.Now.Loading.Signal != "document_loading"}
	case "navigation":
		return Sight{Met: len(s.Happened.Loaders) > 0}
	}
	if t == nil {
		return Sight{}
	}
	list := s.candidates(t, w.For == "clickable")
	sight := Sight{Matched: len(list)}
	if len(list) > 0 {
		sight.Last = list[len(list)-1].Node
	}
	if w.Index != nil {
		if *w.Index < 0 || *w.Index >= len(list) {
			sight.Met = w.For == "not_exists" || w.For == "hidden"
			return sight
		}
		i := *w.Index
		list, sight.SelectedIndex = list[i:i+1], &i
	}
	return s.decide(w.For, list, sight)
}

// candidates are all matches of a target in document order.
func (s *Scene) candidates(t *Target, owner bool) []Candidate {
	o := ResolveOptions{Owner: owner, Hidden: true}
	if t.Selector == nil {
		f, miss := s.Now.byID(s.Identity, t.ElementID, o)
		if miss != nil {
			return nil
		}
		return f.Candidates
	}
	m, miss := s.Now.matches(s.Identity, t.Selector, o)
	if miss != nil {
		return nil
	}
	if !m.separated {
		slices.SortStableFunc(m.found, inDocument)
	}
	if i := t.Selector.Index; i != nil {
		if *i < 0 || *i >= len(m.found) {
			return nil
		}
		return m.found[*i : *i+1]
	}
	return m.found
}

// decide looks for a match that satisfies the condition. The absence of one is what
// not_exists and hidden wait for.
func (s *Scene) decide(condition string, list []Candidate, sight Sight) Sight {
	satisfies := func(c Candidate) bool {
		switch condition {
		case "visible", "hidden":
			return seen(c.Node)
		case "clickable":
			return seen(c.Node) && Executable(c.Node) && !c.Node.Disabled
		}
		return true
	}
	best := -1
	for i, c := range list {
		if satisfies(c) && (best < 0 || c.score > list[best].score) {
			best = i
		}
	}
	switch {
	case condition == "not_exists" || condition == "hidden":
		sight.Met = best < 0
		return sight
	case best < 0:
		return sight
	}
	sight.Met = true
	if sight.SelectedIndex == nil {
		sight.SelectedIndex = &best
	}
	rest := slices.Delete(slices.Clone(list), best, best+1)
	slices.SortStableFunc(rest, byRank)
	sight.Found = s.Now.found(s.Identity, matched{found: append([]Candidate{list[best]}, rest...)})
	sight.Last = sight.Found.Node
	return sight
}
