package main

import (
	"container/heap"
	"errors"
	"runtime"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// A graph is the new part of a history: what can be reached from the present tips and
// not from those of the last run.
type graph struct {
	repo        *repository
	firstParent bool

	nodes   []node
	edges   []int32 // parents of all nodes that were read
	index   map[plumbing.Hash]int32
	queue   timeHeap
	open    int // nodes in the queue that are new
	missing int // commits that new history names and the repository lacks
}

// A node is a commit seen. It is small: there are as many as commits.
type node struct {
	hash        plumbing.Hash
	known       bool            // reached from the last run's tips
	read        bool            // its parents are in edges
	unread      []plumbing.Hash // parents, until then
	time        int64
	edge, edges int32
}

func newGraph(repo *repository, firstParent bool) *graph {
	g := &graph{repo: repo, firstParent: firstParent, index: map[plumbing.Hash]int32{}}
	g.queue.graph = g
	return g
}

// grow reads history from the tips down to where everything is known. Both
// sides are followed newest first until nothing new is left, so the known side
// is read about as far back as the new one. A clock that went wrong can make it
// take a known commit for a new one, which costs a repetition; never the other
// way round.
func (g *graph) grow(tips, known []plumbing.Hash, tick func(read int) error) error {
	for _, h := range known {
		if _, err := g.reach(h, true); err != nil {
			return err
		}
	}
	for _, h := range tips {
		if _, err := g.reach(h, false); err != nil {
			return err
		}
	}
	for done := 1; g.open > 0; done++ {
		if err := g.expand(heap.Pop(&g.queue).(int32)); err != nil {
			return err
		}
		runtime.Gosched() // see softMemory
		if done%1000 == 0 {
			if err := tick(len(g.nodes)); err != nil {
				return err
			}
		}
	}
	return nil
}

// expand reaches the parents of a node.
func (g *graph) expand(i int32) error {
	n := g.nodes[i]
	if !n.known {
		g.open--
	}
	first := int32(len(g.edges))
	for _, h := range n.unread {
		p, err := g.reach(h, n.known)
		if err != nil {
			return err
		}
		if p >= 0 {
			g.edges = append(g.edges, p)
		}
	}
	at := &g.nodes[i]
	at.read, at.unread = true, nil
	at.edge, at.edges = first, int32(len(g.edges))-first
	return nil
}

// parents returns the parents of a node that was read.
func (g *graph) parents(n *node) []int32 { return g.edges[n.edge : n.edge+n.edges] }

// reach takes note of a commit that the walk has come to, and returns its
// number, or -1 if it is missing.
func (g *graph) reach(h plumbing.Hash, known bool) (int32, error) {
	if i, seen := g.index[h]; seen {
		if known {
			g.markKnown(i)
		}
		return i, nil
	}
	n, err := g.load(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		if !known { // else a tip of the last run, collected as garbage
			g.missing++
		}
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	n.known = known
	i := int32(len(g.nodes))
	g.nodes = append(g.nodes, n)
	g.index[h] = i
	heap.Push(&g.queue, i)
	if !known {
		g.open++
	}
	return i, nil
}

// markKnown makes a commit, and what was reached from it, known.
func (g *graph) markKnown(i int32) {
	stack := []int32{i}
	for len(stack) > 0 {
		n := &g.nodes[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		if n.known {
			continue
		}
		n.known = true
		if !n.read {
			g.open--
			continue
		}
		stack = append(stack, g.parents(n)...)
	}
}

// load reads a commit's parents and time.
func (g *graph) load(h plumbing.Hash) (node, error) {
	c, err := g.repo.commit(h)
	if err != nil {
		return node{}, err
	}
	n := node{hash: h, time: c.Committer.When.Unix()}
	if !g.repo.shallow[h] {
		n.unread = c.ParentHashes
	}
	if g.firstParent && len(n.unread) > 1 {
		n.unread = n.unread[:1]
	}
	return n, nil
}

// commit reads a commit.
func (r *repository) commit(h plumbing.Hash) (*object.Commit, error) {
	data, err := r.readKind(h, plumbing.CommitObject)
	if err != nil {
		return nil, err
	}
	c := &object.Commit{}
	if err := c.Decode(&encoded{content: content{plumbing.CommitObject, data}, hash: h}); err != nil {
		return nil, err
	}
	return c, nil
}

// A timeHeap is the queue of the walk, newest first.
type timeHeap struct {
	graph *graph
	items []int32
}

func (q *timeHeap) Len() int { return len(q.items) }
func (q *timeHeap) Less(a, b int) bool {
	return q.graph.nodes[q.items[a]].time > q.graph.nodes[q.items[b]].time
}
func (q *timeHeap) Swap(a, b int) { q.items[a], q.items[b] = q.items[b], q.items[a] }
func (q *timeHeap) Push(v any)    { q.items = append(q.items, v.(int32)) }
func (q *timeHeap) Pop() any {
	last := len(q.items) - 1
	v := q.items[last]
	q.items = q.items[:last]
	return v
}
