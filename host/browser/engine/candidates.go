package engine

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/sluicehost/sluice/host/browser/page"
)

// ResolveOptions say what an element is needed for.
type ResolveOptions struct {
	// Verb is the verb that will act on the element. For "" and reading verbs passive elements
	// match too.
	Verb Verb
	// Rebind accepts the one element that resembles the element of a stale id.
	Rebind bool
	// Skip excludes elements that recovery has tried (strategy alternate_candidate).
	Skip map[page.Ref]bool
	// Delegated accepts a passive match that a listener of the document may handle, if nothing else
	// matches.
	Delegated bool
	// Owner replaces a passive match by the element that acts for it, even when nothing will be
	// dispatched: for the clickable wait and for predicates about state.
	Owner bool
	// Hidden accepts elements that are not visible: for exists, count and waits.
	Hidden bool
}

// acts reports whether the element has to be executable.
func (o ResolveOptions) acts() bool { return o.Verb.IsAction() && !passiveTarget(o.Verb) }

// A Candidate is an element that may be meant.
type Candidate struct {
	Node *page.Node
	Via  *page.Node // the passive element that matched; may be nil
	// Control is the hidden control that Node is the label of: Node is clicked, Control has the
	// state. It is nil otherwise.
	Control *page.Node
	Score   float64 // 0 to 1, three decimals
	Reason  string
	Hint    *Hint

	score int
}

// A Found is the element that was chosen.
type Found struct {
	Node       *page.Node // part of the look; must not be changed
	Via        *page.Node // the passive element that led to it; may be nil
	Control    *page.Node // as in Candidate
	Element    Element
	Resolution Resolution
	// Candidates are ranked, the chosen one first.
	Candidates []Candidate
	// Rebound means that the element of the id is gone and this one replaces it.
	Rebound bool
}

// State returns the node whose state the action changes: Control if set, otherwise Node.
func (f *Found) State() *page.Node {
	return cmp.Or(f.Control, f.Node)
}

// A Miss is a target for which there is no element to act on.
type Miss struct {
	Code       Code
	Detail     string // not_executable for ACTION_REJECTED
	Resolution Resolution
	Candidates []Candidate
}

// Bounds of the alternates listed: of a choice, and of elements that share an id.
const (
	maxAlternates = 3
	maxCollisions = 10
)

// Resolve chooses the element that a target means. Exactly one of the results is not nil. Elements
// named in the result get ids of id. The caller refuses a confidence that is too low.
func (l *Look) Resolve(id *Identity, t *Target, o ResolveOptions) (*Found, *Miss) {
	if t.Selector == nil {
		return l.byID(id, t.ElementID, o)
	}
	m, miss := l.matches(id, t.Selector, o)
	if miss != nil {
		return nil, miss
	}
	if i := t.Selector.Index; i != nil {
		if *i < 0 || *i >= len(m.found) {
			return nil, l.miss(id, ElementNotFound, "", nil)
		}
		slices.SortStableFunc(m.found, inDocument)
		m.found = []Candidate{m.found[*i]}
	}
	if len(m.found) == 0 && o.Delegated {
		m.delegated()
	}
	switch {
	case len(m.found) == 0 && len(m.passive) > 0 && o.acts():
		return nil, l.miss(id, ActionRejected, "not_executable", m.passive)
	case len(m.found) == 0:
		return nil, l.miss(id, ElementNotFound, "", nil)
	case o.acts() && !m.separated && m.tied():
		return nil, l.miss(id, AmbiguousTarget, "", m.found)
	}
	return l.found(id, m), nil
}

// found makes the first candidate the chosen element.
func (l *Look) found(id *Identity, m matched) *Found {
	first := m.found[0]
	rest := append(slices.Clone(m.found[1:]), m.passive...)
	f := &Found{Node: first.Node, Via: first.Via, Control: first.Control, Candidates: m.found,
		Element: l.element(first.Node, id.keep(l, first.Node))}
	f.Element.ExpectedSignal, f.Element.Hint = ExpectedSignal(f.State()), first.Hint
	if f.Control != nil {
		f.Element.State = stateOf(f.Control)
	}
	f.Resolution = l.resolution(id, first.Score, first.Reason, len(m.found), rest, maxAlternates)
	return f
}

func (l *Look) miss(id *Identity, code Code, detail string, list []Candidate) *Miss {
	m := &Miss{Code: code, Detail: detail, Candidates: list}
	most, score, reason := maxCollisions, 0.0, ""
	if len(list) > 0 {
		score, reason = list[0].Score, list[0].Reason
	}
	m.Resolution = l.resolution(id, score, reason, len(list), list, most)
	return m
}

func (l *Look) resolution(id *Identity, score float64, reason string, count int, rest []Candidate,
	most int) Resolution {
	r := Resolution{Confidence: score, Reason: reason, MatchedCount: count, Alternates: []Alternate{}}
	for _, c := range rest[:min(len(rest), most)] {
		r.Alternates = append(r.Alternates, Alternate{
			ElementID: id.keep(l, c.Node), Role: c.Node.Role, Text: cutText(labelOf(c.Node), 80), Bounds: c.Node.Bounds,
			Clickable: Executable(c.Node), Enabled: !c.Node.Disabled, Score: c.Score, Reason: c.Reason,
		})
	}
	r.FallbackAvailable = len(r.Alternates) > 0
	return r
}

// byID resolves an element id to its own element, or to a replacement.
func (l *Look) byID(id *Identity, elementID string, o ResolveOptions) (*Found, *Miss) {
	r, ok := id.record(elementID)
	if !ok {
		return nil, l.miss(id, StaleReference, "", nil)
	}
	if n := l.Node(r.ref); n != nil && r.same(l, n) && !o.Skip[n.Ref] {
		return l.exactly(id, n, o)
	}
	var alike, like []Candidate
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if n.Visible && r.alike(n) && !o.Skip[n.Ref] {
			alike = append(alike, candidate(n, mark{1000, "same_role_name_and_id", false}))
		}
	}
	if o.Rebind && len(alike) == 1 {
		f, miss := l.exactly(id, alike[0].Node, o)
		if f != nil {
			f.Rebound, f.Resolution.Reason = true, "rebound"
		}
		return f, miss
	}
	if like = alike; len(like) == 0 {
		if m, miss := l.matches(id, &r.selector, o); miss == nil {
			like = m.found
		}
	}
	return nil, l.miss(id, StaleReference, "", like[:min(len(like), maxAlternates)])
}

// exactly returns the element that an id stands for. If it is passive, the element that it labels
// or that acts for it is taken, as for a selector.
func (l *Look) exactly(id *Identity, n *page.Node, o ResolveOptions) (*Found, *Miss) {
	c, ok := l.promote(candidate(n, mark{1000, "exact_element", false}), o)
	if !ok && !(o.Delegated && c.Node.Delegated) {
		return nil, l.miss(id, ActionRejected, "not_executable", []Candidate{c})
	}
	return l.found(id, matched{found: []Candidate{c}}), nil
}

// inDocument orders by document order, byRank by score and then by document order.
func inDocument(a, b Candidate) int { return cmp.Compare(a.Node.Order, b.Node.Order) }

func byRank(a, b Candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), inDocument(a, b), cmp.Compare(a.Node.Ref, b.Node.Ref))
}

// nearMiss is the reason of an alternate that does not match but may have been meant.
const nearMiss = "near_miss"

// NearMisses returns the elements that a selector without a match may have meant: those whose texts
// differ in punctuation, length or a letter or two. They are for whoever reads the failure; nothing
// acts on them.
func (l *Look) NearMisses(id *Identity, s *Selector) []Alternate {
	var near []Candidate
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if score := likeness(s, n); n.Visible && score > 0 {
			near = append(near, candidate(n, mark{score, nearMiss, false}))
		}
	}
	slices.SortStableFunc(near, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(len(a.Node.Text), len(b.Node.Text)),
			a.Node.Order-b.Node.Order)
	})
	return l.resolution(id, 0, "", 0, near, maxAlternates).Alternates
}

// likeness returns how similar an element is to a selector, in thousandths; 0 means not at all.
func likeness(s *Selector, n *page.Node) int {
	best := 0
	for _, w := range []struct {
		want string
		have []string
	}{
		{s.Name, []string{n.Name, n.AriaLabel}}, {s.Label, []string{n.Label, n.AriaLabel, n.Name}},
		{s.Text, []string{n.Text, n.Name}}, {s.Placeholder, []string{n.Placeholder}}, {s.TestID, []string{n.TestID}},
		{s.ID, []string{n.ID, n.NameAtt}}, {s.Query, []string{n.Name, n.Text, n.Label, n.Placeholder}},
	} {
		for _, have := range w.have {
			best = max(best, alike(letters(w.want), letters(have)))
		}
	}
	if best > 0 && s.Role != "" && fold(s.Role) != fold(n.Role) {
		best -= 50
	}
	return best
}

// letters returns the letters and digits of a text in lower case.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, cutText(text, 60))
}

// alike scores the similarity of two texts of letters.
func alike(want, have string) int {
	switch {
	case len(want) < 2 || len(have) < 2:
		return 0
	case want == have:
		return 450
	case len(want) > 2 && len(have) < 4*len(want) && strings.Contains(have, want),
		len(have) > 2 && len(want) < 4*len(have) && strings.Contains(want, have):
		return 350
	case len(want) > 3 && edits([]rune(want), []rune(have)) <= 1+len(want)/6:
		return 300
	}
	return 0
}

// edits returns the edit distance between a and b.
func edits(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal, row[j+1] = row[j+1], min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
