package engine

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/sluicehost/sluice/host/browser/page"
)

// ResolveOptions say what an element is wanted for.
type ResolveOptions struct {
	// Verb that will act on it; "" and the reading verbs take passive elements too.
	Verb Verb
	// Rebind takes the one element that is like the one an id stood for.
	Rebind bool
	// Skip are elements that recovery has tried (strategy alternate_candidate).
	Skip map[page.Ref]bool
	// Delegated takes a passive match that a listener of the document may be for, where
	// nothing else matches.
	Delegated bool
	// Owner resolves a passive match to what acts for it even when nothing will be
	// dispatched: the clickable wait, and predicates about state.
	Owner bool
	// Hidden takes what is not seen beside what is: exists, count, and waiting.
	Hidden bool
}

// acts reports whether the element has to be executable.
func (o ResolveOptions) acts() bool { return o.Verb.IsAction() && !passiveTarget(o.Verb) }

// A Candidate is an element that may be meant.
type Candidate struct {
	Node *page.Node
	Via  *page.Node // the passive element that matched, or nil
	// Control is what Node stands for when it is the label of a control that is not
	// seen: Node is clicked, Control has the state. nil otherwise.
	Control *page.Node
	Score   float64 // 0 to 1, three decimals
	Reason  string
	Hint    *Hint

	score int
}

// A Found is an element that was chosen.
type Found struct {
	Node       *page.Node // of the look; must not be changed
	Via        *page.Node // the passive element that led to it, or nil
	Control    *page.Node // as in Candidate
	Element    Element
	Resolution Resolution
	// Candidates are ranked, the chosen one first.
	Candidates []Candidate
	// Rebound: the id's own element is gone and this one stands in.
	Rebound bool
}

// State is the node whose state the action is to change: Control, or else Node.
func (f *Found) State() *page.Node {
	return cmp.Or(f.Control, f.Node)
}

// A Miss is a target that names no element to act on.
type Miss struct {
	Code       Code
	Detail     string // not_executable for ACTION_REJECTED
	Resolution Resolution
	Candidates []Candidate
}

// most alternates are listed: of a choice, and of a collision.
const (
	maxAlternates = 3
	maxCollisions = 10
)

// Resolve chooses the element that a target means. Exactly one of the results is not
// nil. The elements that it names get ids of id. Confidence below a threshold is for
// the caller to refuse.
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

// found makes the first candidate the chosen one.
func (l *Look) found(id *Identity, m matched) *Found {
	first := m.found[0]
	rest := append(slices.Clone(m.found[1:]), m.passive...)
	f := &Found{Node: first.Node, Via: first.Via, Control: first.Control, Candidates: m.found, Element: l.element(first.Node, id.keep(l, first.Node))}
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

func (l *Look) resolution(id *Identity, score float64, reason string, count int, rest []Candidate, most int) Resolution {
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

// byID resolves an element id exactly, or by its replacement.
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

// exactly is the one element that an id stands for. Where it is passive, what it
// labels or what acts for it is taken, as for a selector.
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

// nearMiss is the reason of an alternate that was not asked for, and may have been meant.
const nearMiss = "near_miss"

// NearMisses are the elements of a look that a selector which found none may have meant:
// those whose texts differ in punctuation, are longer or shorter, or have a letter or two
// of another kind. They are for whoever reads the failure, and nothing acts on them.
func (l *Look) NearMisses(id *Identity, s *Selector) []Alternate {
	var near []Candidate
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if score := likeness(s, n); n.Visible && score > 0 {
			near = append(near, candidate(n, mark{score, nearMiss, false}))
		}
	}
	slices.SortStableFunc(near, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(len(a.Node.Text), len(b.Node.Text)), a.Node.Order-b.Node.Order)
	})
	return l.resolution(id, 0, "", 0, near, maxAlternates).Alternates
}

// likeness is how much an element is like what a selector says, in thousandths; 0 is
// not at all.
func likeness(s *Selector, n *page.Node) int {
	best := 0
	for _, w := range []struct {
		want string
		have []string
	}{
		{s.Name, []string{n.Name, n.AriaLabel}}, {s.Label, []string{n.Label, n.AriaLabel, n.Name}}, {s.Text, []string{n.Text, n.Name}},
		{s.Placeholder, []string{n.Placeholder}}, {s.TestID, []string{n.TestID}}, {s.ID, []string{n.ID, n.NameAtt}},
		{s.Query, []string{n.Name, n.Text, n.Label, n.Placeholder}},
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

// letters are those of a text, and its digits, in one form.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, cutText(text, 60))
}

// alike compares two texts of letters.
func alike(want, have string) int {
	switch {
	case len(want) < 2 || len(have) < 2:
		return 0
	case want == have:
		return 450
	case len(want) > 2 && len(have) < 4*len(want) && strings.Contains(have, want), len(have) > 2 && len(want) < 4*len(have) && strings.Contains(want, have):
		return 350
	case len(want) > 3 && edits([]rune(want), []rune(have)) <= 1+len(want)/6:
		return 300
	}
	return 0
}

// edits is how many letters have to be changed to make b of a.
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
