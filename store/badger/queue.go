package badger

import (
	"context"
	"sync"

	"github.com/sluicehost/sluice/store"
)

// An item is one task for the committer: a run's commit, or an operation of the store itself.
type item struct {
	commit *store.Commit
	ack    store.Ack
	settle func(store.Ack, error) // called exactly once

	op func(*group) error
	// barrier requires everything before it to be durable, because the item lists keys, and the committer's view of
	// what is in flight only answers for single keys.
	barrier bool
	// job marks an operation of a job that holds a snapshot. It must not wait while the engine is to be closed, because
	// the engine cannot close before all snapshots are.
	job     bool
	bytes   int64
	claimed int64 // of the queue's bytes; chores are never pushed and claim none
}

func (it *item) run() store.RunID {
	if it.commit == nil {
		return ""
	}
	return it.commit.Lease.RunID
}

// A queue holds items in the order of submission. The bytes in it are bounded.
type queue struct {
	limit    int64
	writable func() error  // returns why nothing is written any more
	ready    chan struct{} // capacity 1: something was pushed or the queue closed

	mu       sync.Mutex // guards the fields below
	items    []*item
	bytes    int64         // of items pushed and not released yet
	released chan struct{} // closed and replaced when bytes are released
	closed   bool
	halted   bool // operations of jobs are refused
}

func newQueue(limit int64, writable func() error) *queue {
	return &queue{limit: limit, writable: writable, ready: make(chan struct{}, 1), released: make(chan struct{})}
}

// push appends items that belong together and waits until there is room. Items above the limit are accepted into an
// empty queue. It returns store.ErrClosed, store.ErrNoSpace for a job while the queue is halted, or ctx's error.
func (q *queue) push(ctx context.Context, items ...*item) error {
	bytes := int64(0)
	for _, it := range items {
		bytes += it.bytes
	}
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return store.ErrClosed
		}
		if q.halted && items[0].job {
			q.mu.Unlock()
			return store.ErrNoSpace
		}
		if q.bytes == 0 || q.bytes+bytes <= q.limit {
			q.items = append(q.items, items...)
			q.bytes += bytes
			for _, it := range items {
				it.claimed = it.bytes
			}
			q.mu.Unlock()
			q.signal()
			return nil
		}
		room := q.released
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// do runs op in the committer and waits until its writes are durable.
func (q *queue) do(ctx context.Context, barrier bool, op func(*group) error) error {
	return q.await(ctx, &item{op: op, barrier: barrier, bytes: 4096})
}

// doJob is like do for an operation that writes about bytes bytes for a job that holds a snapshot. It returns
// store.ErrNoSpace when the engine is about to close.
func (q *queue) doJob(ctx context.Context, bytes int64, op func(*group) error) error {
	return q.await(ctx, &item{op: op, job: true, bytes: bytes})
}

func (q *queue) await(ctx context.Context, it *item) error {
	if err := q.writable(); err != nil {
		return err
	}
	receipt, settle := store.NewReceipt()
	it.settle = settle
	if err := q.push(ctx, it); err != nil {
		return err
	}
	select {
	case <-receipt.Done():
		_, err := receipt.Result()
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// pop removes and returns the first item if there is one and accept agrees; otherwise it returns nil.
func (q *queue) pop(accept func(*item) bool) *item {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 || !accept(q.items[0]) {
		return nil
	}
	it := q.items[0]
	q.items[0] = nil
	q.items = q.items[1:]
	return it
}

// requeue returns items to the front, in order.
func (q *queue) requeue(items []*item) {
	q.mu.Lock()
	q.items = append(append([]*item(nil), items...), q.items...)
	q.mu.Unlock()
	q.signal()
}

// release returns an item's bytes to the queue. The caller holds mu.
func (q *queue) release(it *item) {
	q.bytes -= it.claimed
	it.claimed = 0
	close(q.released)
	q.released = make(chan struct{})
}

// finish settles an item that is durable (err is nil) or has failed by itself.
func (q *queue) finish(it *item, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release(it)
	it.settle(it.ack, err)
}

// fail settles it with err. If it is a run's commit, everything queued behind it for the same run fails as well. mu is
// held throughout, so what the run submits after seeing the error is unaffected.
func (q *queue) fail(it *item, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release(it)
	it.settle(store.Ack{}, err)
	run := it.run()
	if run == "" {
		return
	}
	kept := q.items[:0:0]
	for _, other := range q.items {
		if other.run() != run {
			kept = append(kept, other)
			continue
		}
		q.release(other)
		other.settle(store.Ack{}, err)
	}
	q.items = kept
}

// halt with true fails the waiting operations of jobs and refuses new ones until halt is called with false.
func (q *queue) halt(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.halted = on
	kept := q.items[:0:0]
	for _, it := range q.items {
		if !on || !it.job {
			kept = append(kept, it)
			continue
		}
		q.release(it)
		it.settle(store.Ack{}, store.ErrNoSpace)
	}
	q.items = kept
}

// close refuses further pushes. Queued items stay.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	close(q.released)
	q.released = make(chan struct{})
	q.mu.Unlock()
	q.signal()
}

func (q *queue) drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && len(q.items) == 0
}

// Submit implements store.Store. A commit is one transaction.
func (s *disk) Submit(ctx context.Context, c *store.Commit) (*store.Receipt, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	receipt, settle := store.NewReceipt()
	settle, err := s.submit(c, settle)
	if err != nil {
		return nil, err
	}
	if len(c.Batches) > 0 {
		err = s.space.awaitIngest(ctx)
	}
	if err == nil {
		err = s.queue.push(ctx, &item{commit: c, settle: settle, bytes: commitBytes(c), barrier: c.End})
	}
	if err != nil {
		settle(store.Ack{}, err) // discards its files
		return nil, err
	}
	return receipt, nil
}

func gapSize(g store.DetailGap) int64 {
	return int64(len(g.Locator)+len(g.ListCursor)+2*len(g.RecordKey)) + 1024
}

// heldBytes is roughly the cost in the engine of a file in a record: three keys and their values.
const heldBytes = 1200

// commitBytes estimates the cost of c in the engine.
func commitBytes(c *store.Commit) int64 {
	n := int64(1024)
	for _, b := range c.Batches {
		files, _ := b.Holds()
		n += int64(b.Size()) + 256 + int64(files)*heldBytes
	}
	for _, e := range c.Events {
		n += int64(len(e.Data)) + 1024
	}
	for _, states := range [][]store.State{c.Staged, c.Advance} {
		for _, st := range states {
			n += int64(len(st.Cursor)) + 512
		}
	}
	for _, g := range c.Gaps {
		n += gapSize(g)
	}
	if c.Ask != nil {
		n += int64(len(c.Ask.Message)+len(c.Ask.Schema)) + 512
	}
	for _, p := range c.Journal {
		n += int64(len(p.Data)) + 256
	}
	if c.Run != nil {
		n += int64(len(c.Run.Result)) + 1024
	}
	return n
}
