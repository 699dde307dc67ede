package main

import (
	"bytes"
	"container/heap"

	"github.com/go-git/go-git/v5/plumbing"
)

// An order hands out the new commits of a graph oldest first, each after all its
// parents. So at any moment what was handed out is complete downwards, and its
// tips are a cursor that loses nothing.
type order struct {
	graph    *graph
	waiting  []int32 // parents not handed out yet, by node
	start    []int32 // children of a node are children[start[i]:start[i+1]]
	children []int32
	ready    ageHeap
	total    int
}

func newOrder(g *graph) *order {
	o := &order{graph: g, waiting: make([]int32, len(g.nodes)), start: make([]int32, len(g.nodes)+1)}
	o.ready.graph = g
	for i := range g.nodes {
		if g.nodes[i].known {
			continue
		}
		o.total++
		for _, p := range g.parents(&g.nodes[i]) {
			if !g.nodes[p].known {
				o.start[p+1]++
				o.waiting[i]++
			}
		}
	}
	for i := range g.nodes {
		o.start[i+1] += o.start[i]
	}
	o.children = make([]int32, o.start[len(g.nodes)])
	next := append([]int32(nil), o.start...)
	for i := range g.nodes {
		if g.nodes[i].known {
			continue
		}
		for _, p := range g.parents(&g.nodes[i]) {
			if !g.nodes[p].known {
				o.children[next[p]] = int32(i)
				next[p]++
			}
		}
		if o.waiting[i] == 0 {
			o.ready.items = append(o.ready.items, int32(i))
		}
	}
	heap.Init(&o.ready)
	return o
}

// next returns the next commit, and false when there is none.
func (o *order) next() (plumbing.Hash, bool) {
	if len(o.ready.items) == 0 {
		return plumbing.ZeroHash, false
	}
	i := heap.Pop(&o.ready).(int32)
	for _, c := range o.children[o.start[i]:o.start[i+1]] {
		if o.waiting[c]--; o.waiting[c] == 0 {
			heap.Push(&o.ready, c)
		}
	}
	return o.graph.nodes[i].hash, true
}

// An ageHeap is the commits that may come next, oldest first; of two of one
// second the lower hash, so that the order is always the same.
type ageHeap struct {
	graph *graph
	items []int32
}

func (q *ageHeap) Len() int { return len(q.items) }
func (q *ageHeap) Less(a, b int) bool {
	x, y := &q.graph.nodes[q.items[a]], &q.graph.nodes[q.items[b]]
	if x.time != y.time {
		return x.time < y.time
	}
	return bytes.Compare(x.hash[:], y.hash[:]) < 0
}
func (q *ageHeap) Swap(a, b int) { q.items[a], q.items[b] = q.items[b], q.items[a] }
func (q *ageHeap) Push(v any)    { q.items = append(q.items, v.(int32)) }
func (q *ageHeap) Pop() any {
	last := len(q.items) - 1
	v := q.items[last]
	q.items = q.items[:last]
	return v
}
