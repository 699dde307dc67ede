package badger

import (
	"errors"
	"slices"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// Bounds of a group, which takes one transaction, one sync of the engine and one of the witness.
const (
	groupRecords  = 5000
	groupInflight = 2 // prepared groups waiting for the disk
)

// A committer is the only writer of a store. It prepares a group in its own goroutine while the writer's goroutines
// bring the one before to disk.
//
//	queue ──► prepare ──► writer: engine, witness ──► publish, answer
//	             ▲                                        │
//	             └──────────── undo, requeue ◄── failed ──┘
//
// Only its goroutine accesses its fields.
type committer struct {
	s            *disk
	base         reader   // the engine as of the newest published group
	cur          *group   // being prepared
	inflight     []*group // handed to the writer, oldest first
	next         uint64   // sequence of the next group
	maxBytes     int64    // of one group: half the engine's transaction limit
	grants       map[store.ConnectionID]*store.Grant
	unreferenced map[store.ConnectionID]int // upper bound of files that runs let go; some may be held again
	streams      map[streamKey]*stream
	tail         bulk.Tail         // of the bulk files
	buffers      [][]byte          // for bulk, to be reused
	reaping      map[uint32]uint64 // empty bulk files, and the group after which each may be removed
	chores       []*item           // the store's own work, done before queued items
	job          bool              // a job is running
	hash         *bulk.Hasher
	pages        *pageCache
	cands        []candidate // scratch space of ingest
	probes       []bulk.Probe
	filterSum    uint64
	keep         []int
	packed       []byte
	broken       error // set when the outcome of a step is unknown; nothing is written afterwards
}

func newCommitter(s *disk, seq uint64, t bulk.Tail) *committer {
	return &committer{
		s: s, base: s.reader(seq), next: seq + 1, maxBytes: s.db.MaxBatchSize() / 2,
		grants:       make(map[store.ConnectionID]*store.Grant),
		unreferenced: make(map[store.ConnectionID]int),
		streams:      make(map[streamKey]*stream), hash: bulk.NewHasher(),
		pages: newPageCache(s.opts.profile().pages),
		tail:  t, reaping: make(map[uint32]uint64),
	}
}

// run works until the queue is closed and empty.
func (c *committer) run() {
	defer close(c.s.writer.prepared)
	defer func() { c.base.txn.Discard() }()
	for {
		prepared := c.prepareOne()
		if c.sendable(prepared) {
			c.send()
			continue
		}
		if prepared {
			c.collect()
			continue
		}
		if c.cur == nil && len(c.inflight) == 0 && len(c.chores) == 0 && c.s.queue.drained() {
			return
		}
		select {
		case g := <-c.s.writer.written:
			c.finishGroup(g)
		case <-c.s.queue.ready: // something was submitted, or free space was measured
			if l, _ := c.s.space.state(); l == halted {
				c.awaitSpace()
			}
		}
	}
}

// sendable reports whether to send the current group: a full one once there is a slot, any other one when the disk is
// idle and nothing more is ready.
func (c *committer) sendable(more bool) bool {
	switch {
	case c.cur == nil:
		return false
	case c.full():
		return len(c.inflight) < groupInflight
	default:
		return !more && len(c.inflight) == 0
	}
}

func (c *committer) full() bool {
	return c.cur != nil && (c.cur.closed || c.cur.records >= groupRecords || c.cur.bytes >= c.maxBytes/2 ||
		c.cur.inBulk >= bufferBytes)
}

func (c *committer) send() {
	if !c.awaitSpace() {
		return
	}
	g := c.cur
	c.cur, c.next = nil, g.seq+1
	c.inflight = append(c.inflight, g)
	c.s.writer.prepared <- g // does not block: its capacity is groupInflight
}

// collect handles one group that the writer has finished, if any, without waiting.
func (c *committer) collect() {
	select {
	case g := <-c.s.writer.written:
		c.finishGroup(g)
	default:
	}
}

// prepareOne moves one item from the queue into the current group. It reports whether there was one.
func (c *committer) prepareOne() bool {
	if c.full() {
		return false
	}
	it := c.nextItem()
	if it == nil {
		return false
	}
	if c.broken != nil {
		c.s.queue.fail(it, c.broken)
		return true
	}
	if c.cur == nil {
		c.cur = &group{c: c, seq: c.next, index: make(map[string]int), wake: make(map[store.RunID]bool)}
	}
	g := c.cur
	point := g.save()
	g.spill = c.engineBytes(it) > c.maxBytes/2
	if err := c.prepare(g, it); err != nil {
		g.rollback(point)
		if len(g.items) == 0 {
			c.cur = nil
		}
		c.refuse(it, err)
		return true
	}
	g.items = append(g.items, it)
	return true
}

// refuse answers an item that cannot be carried out. If it conflicts with something not durable yet, the answer waits
// until that is, because the caller will read what it conflicts with, and that may still be undone.
func (c *committer) refuse(it *item, err error) {
	var conflict *store.ConflictError
	last := c.cur
	if n := len(c.inflight); last == nil && n > 0 {
		last = c.inflight[n-1]
	}
	if last == nil || !errors.As(err, &conflict) {
		c.s.queue.fail(it, err)
		return
	}
	last.refused = append(last.refused, refusal{it, err})
}

// nextItem takes a chore or else the first queued item. If the current group cannot take it, it closes the group and
// returns nil.
func (c *committer) nextItem() *item {
	if len(c.chores) == 0 {
		return c.s.queue.pop(c.accepts)
	}
	it := c.chores[0]
	if !c.accepts(it) {
		return nil
	}
	c.chores = c.chores[1:]
	return it
}

func (c *committer) prepare(g *group, it *item) error {
	if it.op != nil {
		return it.op(g)
	}
	return c.apply(g, it)
}

// accepts reports whether the current group may take it. A barrier begins a group, and only when none is in flight. An
// item too large for the current group waits for the next.
func (c *committer) accepts(it *item) bool {
	if c.cur == nil {
		return !it.barrier || len(c.inflight) == 0
	}
	c.cur.closed = it.barrier || c.cur.bytes+c.engineBytes(it) > c.maxBytes
	return !c.cur.closed
}

// opBytes bounds what an operation of the store itself, whose long values are bulk, adds to a transaction.
const opBytes = 64 << 10

// engineBytes estimates how much of an item goes into the transaction.
func (c *committer) engineBytes(it *item) int64 {
	if it.commit == nil {
		return min(it.bytes, opBytes)
	}
	n := it.bytes
	for _, b := range it.commit.Batches {
		n -= int64(b.Size())
	}
	return n
}

func (c *committer) inflightNewestFirst() []*group {
	if len(c.inflight) < 2 {
		return c.inflight
	}
	newest := slices.Clone(c.inflight)
	slices.Reverse(newest)
	return newest
}

// finishGroup handles a group with which the writer has finished.
func (c *committer) finishGroup(g *group) {
	if g.err != nil {
		c.failGroup(g)
		return
	}
	c.inflight = c.inflight[1:]
	c.s.publish(g)
	for _, it := range g.items {
		c.s.queue.finish(it, nil)
	}
	for _, r := range g.refused {
		c.s.queue.fail(r.item, r.err)
	}
	c.rebase(g.seq)
	c.recycle(g)
	c.reap()
	c.evict()
}

func (c *committer) rebase(seq uint64) {
	c.base.txn.Discard()
	c.base = c.s.reader(seq)
	c.s.discardBefore(seq)
}

// failGroup undoes a group that did not become durable and everything prepared on top of it. Items of the later groups
// are prepared again.
func (c *committer) failGroup(g *group) {
	for range len(c.inflight) - 1 {
		<-c.s.writer.written // refused by the writer because of the failed one
	}
	later := c.inflight[1:]
	if c.cur != nil {
		later = append(slices.Clone(later), c.cur)
	}
	again := g.refusedItems()
	for _, other := range later {
		again = append(append(again, other.items...), other.refusedItems()...)
	}
	for _, other := range slices.Backward(later) {
		other.undoEffects()
	}
	g.undoEffects()
	c.cur, c.inflight, c.next = nil, nil, g.seq
	if c.s.stopped() != nil {
		c.broken = c.s.stopped()
	}
	clear(c.grants)
	c.s.writer.broken.Store(false)
	c.s.queue.requeue(again)
	for _, it := range g.items {
		c.s.queue.fail(it, g.err)
	}
}

func (g *group) refusedItems() (items []*item) {
	for _, r := range g.refused {
		items = append(items, r.item)
	}
	return items
}

func (g *group) undoEffects() {
	for _, undo := range slices.Backward(g.undo) {
		undo()
	}
}
