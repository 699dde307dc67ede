package postgres

import (
	"context"
	"sync"

	"github.com/sluicehost/sluice/store"
)

// Limits of what waits in Submit and of what goes into one transaction. A single commit may exceed the limits in bytes.
const (
	queueBytes   = 8 << 20
	groupBytes   = 4 << 20
	groupCommits = 64
)

// An item is a submitted commit.
type item struct {
	commit *store.Commit
	ack    store.Ack
	settle func(store.Ack, error) // called exactly once
	bytes  int64
}

// submitted holds the commits that are not settled, in one lane per run. The runs write concurrently; the commits that
// a run submits meanwhile share a transaction.
type submitted struct {
	s     *Store
	lanes sync.WaitGroup

	mu     sync.Mutex // guards the fields below and the queues of the lanes
	byRun  map[store.RunID]*lane
	bytes  int64
	room   chan struct{} // closed and replaced when bytes are released
	closed bool
}

// A lane holds the commits of one run, in order, and what is known about the run. Except for queue and working, only
// the goroutine that works on the lane accesses it.
type lane struct {
	run     store.RunID
	queue   []*item
	working bool
	ended   bool

	lease   store.Lease // of the newest transaction
	commits int64       // acknowledged by the server; -1 if not known
	known
}

// resume prepares the lane for a transaction under a lease. A run that goes on at this host has the next fence; after a
// higher one, another host had it meanwhile, and what the lane knows is out of date.
func (l *lane) resume(lease store.Lease) {
	if lease.Fence != l.lease.Fence && lease.Fence != l.lease.Fence+1 {
		l.forget()
	}
	l.lease = lease
}

func (l *lane) forget() { l.commits, l.known = -1, known{} }

// known is what a lane remembers about the place of its records. No other host writes there, and nothing is erased
// while the run is active.
type known struct {
	heap    int64 // 0 if not known
	streams map[store.Stream]stream
	loose   int // upper bound of files that the run let go; some may be held again
}

func (q *submitted) init(s *Store) {
	q.s, q.byRun, q.room = s, make(map[store.RunID]*lane), make(chan struct{})
}

// Submit implements store.Store.
func (s *Store) Submit(ctx context.Context, c *store.Commit) (*store.Receipt, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	receipt, settle := store.NewReceipt()
	settle, err := s.stageable(c, settle)
	if err != nil {
		return nil, err
	}
	if err := s.submitted.push(ctx, &item{commit: c, settle: settle, bytes: commitBytes(c)}); err != nil {
		settle(store.Ack{}, err) // discards its files
		return nil, err
	}
	return receipt, nil
}

// push appends it to its lane and waits until there is room. It returns store.ErrClosed or ctx's error.
func (q *submitted) push(ctx context.Context, it *item) error {
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return store.ErrClosed
		}
		if q.bytes == 0 || q.bytes+it.bytes <= queueBytes {
			q.bytes += it.bytes
			q.enqueue(it)
			q.mu.Unlock()
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

// enqueue appends it to its lane. The caller holds mu.
func (q *submitted) enqueue(it *item) {
	id := it.commit.Lease.RunID
	l := q.byRun[id]
	if l == nil {
		l = &lane{run: id, commits: -1}
		q.byRun[id] = l
	}
	l.queue = append(l.queue, it)
	if !l.working {
		l.working = true
		q.lanes.Go(func() { q.work(l) })
	}
}

// work commits what is in a lane until it is empty.
func (q *submitted) work(l *lane) {
	for group := q.next(l); len(group) > 0; group = q.next(l) {
		err := q.s.commitAll(l, group)
		if err != nil && len(group) > 1 && !passes(err) {
			group, err = q.single(l, group)
		}
		if err != nil {
			q.fail(l, group, err)
			continue
		}
		q.finish(group, nil)
	}
}

// single commits items one by one after one of them was refused. It returns those that are not settled: the refused one
// and those behind it.
func (q *submitted) single(l *lane, group []*item) ([]*item, error) {
	for i := range group {
		if err := q.s.commitAll(l, group[i:i+1]); err != nil {
			return group[i:], err
		}
		q.finish(group[i:i+1], nil)
	}
	return nil, nil
}

// next returns the items for the next transaction: commits under one lease, of which only the last may end the run. If
// there are none, it removes a lane that knows nothing or whose run has ended.
func (q *submitted) next(l *lane) []*item {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, int64(0)
	for ; n < len(l.queue) && n < groupCommits; n++ {
		it := l.queue[n]
		bytes += it.bytes
		first := l.queue[0].commit.Lease
		if n > 0 && (bytes > groupBytes || l.queue[n-1].commit.End || it.commit.Lease.Fence != first.Fence ||
			it.commit.Lease.ConnectionID != first.ConnectionID) {
			break
		}
	}
	group := l.queue[:n:n]
	l.queue = l.queue[n:]
	if n == 0 {
		l.working = false
		if l.ended || l.commits < 0 {
			delete(q.byRun, l.run)
		}
	}
	return group
}

// Leases implements store.Store. It also forgets what the store remembers of runs that other hosts have now.
func (s *Store) Leases(ctx context.Context) ([]store.Lease, error) {
	idle := s.submitted.idle()
	all, err := s.leases.Leases(ctx)
	if err == nil {
		s.submitted.prune(idle, all)
	}
	return all, err
}

// idle returns the lanes that nothing waits in.
func (q *submitted) idle() (all []*lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.byRun {
		if !l.working {
			all = append(all, l)
		}
	}
	return all
}

// prune removes those of idle lanes whose runs are over or another host has, by a list of leases made since.
func (q *submitted) prune(idle []*lane, leases []store.Lease) {
	epochs := make(map[store.RunID]string, len(leases))
	for _, l := range leases {
		epochs[l.RunID] = l.BootEpoch
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range idle {
		if !l.working && epochs[l.run] != l.lease.BootEpoch {
			delete(q.byRun, l.run)
		}
	}
}

// finish settles items.
func (q *submitted) finish(group []*item, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range group {
		q.bytes -= it.bytes
		if err != nil {
			it.ack = store.Ack{}
		}
		it.settle(it.ack, err)
	}
	close(q.room)
	q.room = make(chan struct{})
}

// fail settles items with err, and everything queued behind them. It does not affect what the run submits after seeing
// the error.
func (q *submitted) fail(l *lane, group []*item, err error) {
	q.mu.Lock()
	group = append(group, l.queue...)
	l.queue = nil
	q.mu.Unlock()
	q.finish(group, err)
}

// close refuses further commits and waits until all others are settled.
func (q *submitted) close() {
	q.mu.Lock()
	q.closed = true
	close(q.room)
	q.room = make(chan struct{})
	q.mu.Unlock()
	q.lanes.Wait()
}

// commitBytes estimates how much memory c takes.
func commitBytes(c *store.Commit) int64 {
	n := int64(1024)
	for _, b := range c.Batches {
		n += int64(b.Size()) + 256
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
		n += int64(len(g.Locator)+len(g.ListCursor)+2*len(g.RecordKey)) + 1024
	}
	for _, p := range c.Journal {
		n += int64(len(p.Data)) + 256
	}
	for _, f := range c.Files {
		n += int64(f.Memory()) + 512
	}
	if c.Run != nil {
		n += int64(len(c.Run.Result)) + 1024
	}
	return n
}
