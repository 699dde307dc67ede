package engine

import (
	"math"
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// matched holds the elements that a selector may mean, best first.
type matched struct {
	found   []Candidate
	passive []Candidate // matches that led to found, or to nothing
	// separated means that an index or a distance distinguishes the first from the second.
	separated bool
	// collides means that several elements share the requested stable id.
	collides bool
}

// tied reports whether nothing distinguishes the two best.
func (m matched) tied() bool {
	if len(m.found) < 2 {
		return false
	}
	return m.collides || m.found[0].score-m.found[1].score <= tie
}

// delegated accepts passive elements that match if the document listens, possibly for them. The
// effect of a click has to be proved anyway.
func (m *matched) delegated() {
	hears := func(c Candidate) bool { return c.Node.Delegated && c.Node.Visible }
	if slices.ContainsFunc(m.passive, hears) {
		m.found = slices.DeleteFunc(slices.Clone(m.passive), func(c Candidate) bool { return !hears(c) })
		m.passive = slices.DeleteFunc(m.passive, hears)
	}
}

func candidate(n *page.Node, m mark) Candidate {
	return Candidate{Node: n, score: m.score, Score: float64(m.score) / 1000, Reason: m.reason}
}

func (c *Candidate) add(points int) {
	c.score = min(c.score+points, 1000)
	c.Score = float64(c.score) / 1000
}

// matches finds what a selector means. A miss is that of within or near.
func (l *Look) matches(id *Identity, s *Selector, o ResolveOptions) (m matched, miss *Miss) {
	area, miss := l.area(id, s)
	if miss != nil {
		return m, miss
	}
	hits := l.hits(s, area, o)
	hits = l.innermost(hits)
	for _, h := range hits {
		c, ok := l.promote(candidate(h.node, h.mark), o)
		switch {
		case o.Skip[c.Node.Ref]:
		case !ok:
			m.passive = append(m.passive, c)
		default:
			m.found = append(m.found, c)
		}
	}
	l.merge(&m)
	m.collides = (s.TestID != "" || s.ID != "") && len(m.found) > 1
	slices.SortStableFunc(m.found, byRank)
	slices.SortStableFunc(m.passive, byRank)
	m.drop()
	if s.Near != nil {
		miss = l.sortNear(id, s.Near, &m)
	}
	return m, miss
}

// searched is where a selector looks.
type searched struct {
	frame  *string
	within *page.Node
}

func (l *Look) area(id *Identity, s *Selector) (in searched, miss *Miss) {
	if s.Frame != "" {
		f, ok := l.frame(s.Frame)
		if !ok {
			return in, l.miss(id, ElementNotFound, "", nil)
		}
		in.frame = &f
	}
	if s.Within != nil {
		f, miss := l.one(id, s.Within)
		if miss != nil {
			return in, miss
		}
		in.within = f.Node
	}
	return in, nil
}

// one resolves the target of within or near, which must be unambiguous, or it would silently decide
// between candidates.
func (l *Look) one(id *Identity, t *Target) (*Found, *Miss) {
	f, miss := l.Resolve(id, t, ResolveOptions{})
	if miss == nil && (t.Selector == nil || t.Selector.Index == nil) && (matched{found: f.Candidates}).tied() {
		return nil, l.miss(id, AmbiguousTarget, "", f.Candidates)
	}
	return f, miss
}

// A hit is an element that matches.
type hit struct {
	node *page.Node
	mark mark
}

// hits returns the matching elements in document order: visible ones, or, if there are none or
// Hidden is set, others too. File inputs are often hidden on purpose.
func (l *Look) hits(s *Selector, in searched, o ResolveOptions) []hit {
	var seen, hidden []hit
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if in.frame != nil && n.Frame != *in.frame || in.within != nil && !l.inside(n, in.within) {
			continue
		}
		if s.Contains != "" && fit(fold(s.Contains), n.Text, n.Name) == unlike {
			continue
		}
		m := l.mark(n, s)
		switch {
		case m.reason == "":
		case n.Visible && !n.Bounds.Empty() || o.Verb == Upload && n.Tag == "input" && n.Type == "file":
			seen = append(seen, hit{n, m})
		default:
			hidden = append(hidden, hit{n, m})
		}
	}
	switch {
	case len(seen) == 0:
		seen = hidden
	case o.Hidden:
		seen = append(seen, hidden...)
		slices.SortStableFunc(seen, func(a, b hit) int { return a.node.Order - b.node.Order })
	}
	return l.unique(s, seen)
}

func (l *Look) mark(n *page.Node, s *Selector) mark {
	exact := s.Exact == nil || *s.Exact
	m, ok := mark{}, true
	if s.Selector != (page.Selector{Query: s.Query}) {
		m, ok = l.structured(n, s, exact)
	}
	if !ok {
		return mark{}
	}
	if s.Query != "" {
		q := l.free(n, s.Query, s.Exact != nil && *s.Exact)
		if q.reason == "" {
			return mark{}
		}
		m = m.or(q)
	}
	return m
}

// unique raises the score of a single CSS match, or of one that an index picks.
func (l *Look) unique(s *Selector, hits []hit) []hit {
	if s.CSS == "" || len(hits) != 1 && s.Index == nil {
		return hits
	}
	for i := range hits {
		hits[i].mark = hits[i].mark.or(cssUnique)
	}
	return hits
}

// innermost drops elements that match only because of another match's text: a text within an acting
// element that matches as well, and an element around a match.
func (l *Look) innermost(hits []hit) []hit {
	score := make(map[page.Ref]int, len(hits))
	for _, h := range hits {
		score[h.node.Ref] = h.mark.score
	}
	hits = slices.DeleteFunc(hits, func(h hit) bool {
		o := l.climb(h.node)
		return h.mark.text && o != nil && o != h.node && score[o.Ref] >= h.mark.score
	})
	best := map[int]int{} // by node: the best score of a match below it
	for _, h := range hits {
		if l.tree.enter[l.at[h.node.Ref]] == 0 {
			continue // it contains itself
		}
		for i := l.tree.parent[l.at[h.node.Ref]]; i >= 0 && best[i] < h.mark.score; i = l.tree.parent[i] {
			best[i] = h.mark.score
		}
	}
	return slices.DeleteFunc(hits, func(h hit) bool {
		return h.mark.text && best[l.at[h.node.Ref]] >= h.mark.score
	})
}

// promote replaces a match by the element that acts for it. ok is false if one is needed and there
// is none.
func (l *Look) promote(c Candidate, o ResolveOptions) (Candidate, bool) {
	if o.acts() || o.Owner {
		n, reason := l.owner(c.Node)
		if n == nil && c.score >= partialText.score {
			n, reason = l.nearby(c.Node)
		}
		switch {
		case n == nil && o.acts():
			return c, false
		case n != nil && n != c.Node:
			c.Via, c.Node, c.Reason = c.Node, n, reason
			c.add(bonusPromoted)
			if reason == "slider_track_preferred" {
				c.Hint = hintOf(n)
			}
		}
	}
	if o.Verb == Click || o.Verb == Check {
		if label := l.labelFor(c.Node); label != nil {
			c.Control, c.Node, c.Reason = c.Node, label, "label_of_hidden_control"
		}
	}
	if Executable(c.Node) && c.Node.Visible && !c.Node.Disabled {
		c.add(bonusInteractable)
	}
	return c, true
}

// merge keeps the best of the candidates for the same element. The others become alternates.
func (l *Look) merge(m *matched) {
	at := map[page.Ref]int{}
	var out []Candidate
	for _, c := range m.found {
		if c.Via != nil {
			via := candidate(c.Via, mark{c.score, c.Reason, false})
			m.passive = append(m.passive, via)
		}
		i, ok := at[c.Node.Ref]
		switch {
		case !ok:
			at[c.Node.Ref] = len(out)
			out = append(out, c)
		case c.score > out[i].score || c.score == out[i].score && out[i].Via != nil && c.Via == nil:
			out[i] = c
		}
	}
	m.found = out
}

// drop turns candidates that are clearly worse than the best into alternates, if the best reaches
// 0.95.
func (m *matched) drop() {
	if len(m.found) == 0 || m.found[0].score < exactLabel.score {
		return
	}
	i := slices.IndexFunc(m.found, func(c Candidate) bool { return c.score < exactLabel.score-tie })
	if i > 0 {
		m.passive = append(slices.Clone(m.found[i:]), m.passive...)
		m.found = m.found[:i]
	}
}

// sortNear orders candidates by their distance from an anchor.
func (l *Look) sortNear(id *Identity, anchor *Target, m *matched) *Miss {
	f, miss := l.one(id, anchor)
	if miss != nil {
		return miss
	}
	from := f.Node.Bounds
	m.found = slices.DeleteFunc(m.found, func(c Candidate) bool { return c.Node.Ref == f.Node.Ref })
	slices.SortStableFunc(m.found, func(a, b Candidate) int {
		switch x, y := distance(from, a.Node.Bounds), distance(from, b.Node.Bounds); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return byRank(a, b)
	})
	m.separated = len(m.found) > 1 && distance(from, m.found[0].Node.Bounds) < distance(from, m.found[1].Node.Bounds)
	return nil
}

// distance between two boxes, 0 where they touch or overlap.
func distance(a, b page.Box) float64 {
	dx := max(0, a.X-(b.X+b.W), b.X-(a.X+a.W))
	dy := max(0, a.Y-(b.Y+b.H), b.Y-(a.Y+a.H))
	return math.Hypot(dx, dy)
}
