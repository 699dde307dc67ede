package engine

import (
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// maxClimb bounds how many ancestors are searched for an owner.
const maxClimb = 20

// A Look is an observation together with the query that it answers. It is immutable after NewLook
// and safe for concurrent use.
type Look struct {
	*page.Observation
	query page.Query
	at    map[page.Ref]int
	tree  *tree
	// stable counts the elements by stable id.
	stable map[string]int
}

// NewLook wraps the result of a Read with q. The observation is kept, not copied.
func NewLook(o *page.Observation, q page.Query) *Look {
	l := &Look{Observation: o, query: q, at: make(map[page.Ref]int, len(o.Nodes)), stable: map[string]int{}}
	for i := range o.Nodes {
		l.at[o.Nodes[i].Ref] = i
		l.stable[StableID(&o.Nodes[i])]++
	}
	l.tree = newTree(o.Nodes, l.at)
	return l
}

// Node returns the node of a ref, or nil if it is not in the look. It is part of the look and must
// not be changed.
func (l *Look) Node(ref page.Ref) *page.Node {
	if i, ok := l.at[ref]; ok && ref != "" {
		return &l.Nodes[i]
	}
	return nil
}

// up returns the nearest ancestor in the look, or nil.
func (l *Look) up(n *page.Node) *page.Node { return l.Node(n.Up) }

// inside reports whether n lies below box in the tree.
func (l *Look) inside(n, box *page.Node) bool { return l.tree.inside(l.at[n.Ref], l.at[box.Ref]) }

// frame returns the id of the frame that a guest names: by its id in snapshots, otherwise by the
// name or the id of its element. It reports false if there is none.
func (l *Look) frame(name string) (string, bool) {
	for _, called := range []func(page.Subframe) string{
		func(f page.Subframe) string { return f.ID },
		func(f page.Subframe) string { return f.Name },
		func(f page.Subframe) string { return f.ElementID },
	} {
		if i := slices.IndexFunc(l.Frames, func(f page.Subframe) bool { return called(f) == name }); i >= 0 {
			return l.Frames[i].ID, true
		}
	}
	return "", false
}

// css reports whether n satisfies css, which was part of the query.
func (l *Look) css(n *page.Node, css string) bool {
	for i, s := range l.query.Selectors {
		if s.CSS == css && slices.Contains(n.Matches, i) {
			return true
		}
	}
	return false
}

// Want returns a query whose answer suffices to resolve the targets and evaluate the predicates.
// For element ids it includes similar elements, so that replacements can be found. Nil entries are
// skipped.
func Want(id *Identity, targets []*Target, predicates []*Predicate) page.Query {
	w := querying{id: id, query: page.Query{Digests: true}}
	for _, t := range targets {
		w.target(t)
	}
	for _, p := range predicates {
		w.predicate(p)
	}
	return w.query
}

// Also returns a query that covers both q and other.
func Also(q, other page.Query) page.Query {
	w := querying{query: q}
	for _, s := range other.Selectors {
		w.selector(s)
	}
	for _, r := range other.Refs {
		w.ref(r)
	}
	for _, name := range other.Attributes {
		if !slices.Contains(w.query.Attributes, name) {
			w.query.Attributes = append(w.query.Attributes, name)
		}
	}
	return w.query
}

type querying struct {
	id    *Identity
	query page.Query
}

func (w *querying) target(t *Target) {
	if t == nil {
		return
	}
	if t.Selector == nil {
		if r, ok := w.id.record(t.ElementID); ok {
			w.ref(r.ref)
			w.selector(r.selector.Selector)
		}
		return
	}
	w.selector(t.Selector.Selector)
	w.target(t.Selector.Within)
	w.target(t.Selector.Near)
}

func (w *querying) predicate(p *Predicate) {
	if p == nil {
		return
	}
	for i := range p.Of {
		w.predicate(&p.Of[i])
	}
	w.target(p.Target)
	if p.Kind == "attribute" && !slices.Contains(w.query.Attributes, p.Attribute) {
		w.query.Attributes = append(w.query.Attributes, p.Attribute)
	}
}

func (w *querying) selector(s page.Selector) {
	if s != (page.Selector{}) && !slices.Contains(w.query.Selectors, s) {
		w.query.Selectors = append(w.query.Selectors, s)
	}
}

func (w *querying) ref(r page.Ref) {
	if !slices.Contains(w.query.Refs, r) {
		w.query.Refs = append(w.query.Refs, r)
	}
}

// A tree answers questions of ancestry in constant time, so that no page can make
// them dear. Nodes are indices into the look.
//
//	enter and leave number the nodes in the order of a walk: m is below n when
//	enter[n] < enter[m] and leave[m] <= leave[n]
type tree struct {
	parent   []int // -1 at the top
	children [][]int
	enter    []int // from 1; 0 for a node that is its own ancestor
	leave    []int // the highest number below, its own included
	order    []int // the nodes by number
	acting   []int // acting[i] is how many of the first i nodes react by themselves
	above    []int // how many such ancestors a node has
}

func newTree(nodes []page.Node, at map[page.Ref]int) *tree {
	n := len(nodes)
	t := &tree{make([]int, n), make([][]int, n), make([]int, n), make([]int, n), make([]int, n+1),
		make([]int, n+1), make([]int, n)}
	for i := range nodes {
		t.parent[i] = -1
		if up, ok := at[nodes[i].Up]; ok && nodes[i].Up != "" {
			t.parent[i] = up
			t.children[up] = append(t.children[up], i)
		}
	}
	last := 0
	for i := range nodes {
		if t.parent[i] == -1 {
			last = t.walk(nodes, i, last)
		}
	}
	return t
}

// walk numbers top and what is below it, from last+1, without recursion.
func (t *tree) walk(nodes []page.Node, top, last int) int {
	type step struct{ node, child int }
	visit := func(i int) {
		last++
		t.enter[i], t.leave[i], t.order[last] = last, last, i
		t.acting[last] = t.acting[last-1] + count(acts(&nodes[i]))
	}
	visit(top)
	for path := []step{{top, 0}}; len(path) > 0; {
		s := &path[len(path)-1]
		if s.child == len(t.children[s.node]) {
			t.leave[s.node] = last
			path = path[:len(path)-1]
			continue
		}
		c := t.children[s.node][s.child]
		s.child++
		t.above[c] = t.above[s.node] + count(acts(&nodes[s.node]))
		visit(c)
		path = append(path, step{c, 0})
	}
	return last
}

// inside reports whether m is below n.
func (t *tree) inside(m, n int) bool {
	return t.enter[n] != 0 && t.enter[n] < t.enter[m] && t.leave[m] <= t.leave[n]
}

// below returns the nodes below n in walk order, at most most of them.
func (t *tree) below(n, most int) []int {
	if t.enter[n] == 0 {
		return nil
	}
	return t.order[t.enter[n]+1 : min(t.leave[n], t.enter[n]+most)+1]
}

// actors returns how many nodes at or below n react by themselves.
func (t *tree) actors(n int) int {
	if t.enter[n] == 0 {
		return 0
	}
	return t.acting[t.leave[n]] - t.acting[t.enter[n]-1]
}

// acts reports whether n reacts by itself.
func acts(n *page.Node) bool { return owns(n) || n.OwnHear }

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
