package badger

import (
	"context"
	"sync"

	"github.com/sluicehost/sluice/store"
)

// An item is one thing the committer has to do: a run's commit, or an op of
// the store itself.
type item struct {
	commit *store.Commit
	ack    store.Ack
	settle func(store.Ack, error) // exactly once

	op func(*group) error
	// barrier asks that everything before it is durable, because the item lists
	// keys and the committer's overlay answers single keys only.
	barrier bool
	// job marks an op of a job that holds a snapshot meanwhile: it must not wait
	// while the engine is closed, for the engine closes when snapshots do.
	job     bool
	bytes   int64
	claimed int64 // of the queue's bytes; a chore was never pushed and claims none
}

func (it *item) run() store.RunID {
	if it.commit == nil {
		return ""
	}
	return it.commit.Lease.RunID
}

// A queue holds items in the order submitted, bounded in bytes.
type queue struct {
	limit    int64
	writable func() error  // why nothing is written any more
	ready    chan struct{} // capacity 1: something was pushed or the queue closed

	mu     sync.Mutex // guards all below
	items  []*item
	bytes  int64         // of items pushed and not yet released
	room   chan struct{} // closed and replaced when bytes are released
	closed bool
	halted bool // ops of jobs are refused
}

func newQueue(limit int64, writable func() error) *queue {
	return &queue{limit: limit, writable: writable, ready: make(chan struct{}, 1), room: make(chan struct{})}
}

// push appends items that belong together, waiting for room. More than the
// limit passes when it is alone. It returns store.ErrClosed or ctx's error.
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
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// do runs op in the committer and waits until what it wrote is durable.
func (q *queue) do(ctx context.Context, barrier bool, op func(*group) error) error {
	return q.await(ctx, &item{op: op, barrier: barrier, bytes: 4096})
}

// doJob is do for an op that writes about so many bytes, on behalf of a job that
// holds a snapshot; store.ErrNoSpace when the engine is about to close.
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

// pop removes the first item if accept agrees; nil when there is none.
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

// back puts items at the front again, in order.
func (q *queue) back(items []*item) {
	q.mu.Lock()
	q.items = append(append([]*item(nil), items...), q.items...)
	q.mu.Unlock()
	q.signal()
}

// release ends an item's claim on the queue's bytes. Callers hold mu.
func (q *queue) release(it *item) {
	q.bytes -= it.claimed
	it.claimed = 0
	close(q.room)
	q.room = make(chan struct{})
}

// finish settles an item that is durable or has failed alone.
func (q *queue) finish(it *item, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release(it)
	it.settle(it.ack, err)
}

// fail settles it with err and, of a run's commit, everything queued behind it
// for the same run. The lock is held throughout: what the run submits after it
// has seen the error is not touched.
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

// halt refuses the ops of jobs, those that wait included, until it is called
// with false.
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

// close refuses further pushes; what is queued stays.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	close(q.room)
	q.room = make(chan struct{})
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
	if len(c.Batches) > 0 {
		if err := s.space.awaitIngest(ctx); err != nil {
			return nil, err
		}
	}
	receipt, settle := store.NewReceipt()
	settle, err := s.submit(c, settle)
	if err != nil {
		return nil, err
	}
	it := &item{commit: c, settle: settle, bytes: commitBytes(c), barrier: c.End}
	if err := s.queue.push(ctx, it); err != nil {
		settle(store.Ack{}, err) // drops its files
		return nil, err
	}
	return receipt, nil
}

func gapSize(g store.DetailGap) int64 {
	return int64(len(g.Locator)+len(g.ListCursor)+2*len(g.RecordKey)) + 1024
}

// heldBytes is about what a file of a record costs in the engine: three keys and their values.
const heldBytes = 1200

// commitBytes estimates what c costs in the engine.
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
