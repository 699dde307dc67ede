package engine

import "github.com/sluicehost/sluice/host/browser/page"

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
	acting   []int // acting[i] of the nodes numbered up to i answer by themselves
	above    []int // how many such ancestors a node has
}

func newTree(nodes []page.Node, at map[page.Ref]int) *tree {
	n := len(nodes)
	t := &tree{make([]int, n), make([][]int, n), make([]int, n), make([]int, n), make([]int, n+1), make([]int, n+1), make([]int, n)}
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

// walk numbers what is at and below top, beginning after last, without recursion.
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

// below are the nodes below n in the order of the walk, at most most of them.
func (t *tree) below(n, most int) []int {
	if t.enter[n] == 0 {
		return nil
	}
	return t.order[t.enter[n]+1 : min(t.leave[n], t.enter[n]+most)+1]
}

// actors is how many nodes at and below n answer by themselves.
func (t *tree) actors(n int) int {
	if t.enter[n] == 0 {
		return 0
	}
	return t.acting[t.leave[n]] - t.acting[t.enter[n]-1]
}

// acts reports whether n answers by itself, in whatever way.
func acts(n *page.Node) bool { return owns(n) || n.OwnHear }

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
