package badger

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	engine "github.com/dgraph-io/badger/v4"

	"github.com/sluicehost/sluice/store"
)

// Records lie in the order of their versions. Another order is worked out from
// one walk over the stream, and from then on only takes in what was written since:
// when somebody asks for it, or ahead of that when much was written. A version
// that is superseded later stays in it and is passed over. A few are open at a
// time; the others wait in their files, for the next process as well. Those of a
// View are its own, and end with it.
const (
	ordersMost    = 8         // kept
	orderedAtOnce = 128       // records read at a time
	orderedBytes  = pageBytes // of their data
	orderedScan   = 1000      // records that Match is asked about: each may be in another segment
)

func (s *Store) ordered(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	return s.orders.page(ctx, s, q, func(ctx context.Context) (*snapshot, error) { return s.snapshot(ctx, nil) })
}

// page reads one page. The snapshot is opened with the order held, so it is
// never older than what the order has taken in.
func (o *orders) page(ctx context.Context, s *Store, q store.RecordQuery, open func(context.Context) (*snapshot, error)) (store.RecordPage, error) {
	r, err := open(ctx)
	if err != nil {
		return store.RecordPage{}, err
	}
	n, ok, err := r.counters(q.Connection, q.Stream)
	r.close()
	if err != nil || !ok {
		return store.RecordPage{}, err
	}
	so, err := o.hold(ctx, s, orderID{n.number, q.Order})
	if err != nil {
		return store.RecordPage{}, err
	}
	defer o.release(so)
	if r, err = open(ctx); err != nil {
		return store.RecordPage{}, err
	}
	defer r.close()
	now, ok, err := r.counters(q.Connection, q.Stream)
	if err != nil || !ok || now.number != n.number {
		return store.RecordPage{}, err // erased this moment
	}
	page, err := so.upToDate(ctx, r, now, q)
	var damage *store.DamageError
	if so.past && (errors.Is(err, errOrderBroken) || errors.As(err, &damage)) {
		// The file is of another process, and whatever happened since. Damage that is
		// still there without it is the store's.
		if err := so.reset(); err != nil {
			return store.RecordPage{}, err
		}
		page, err = so.upToDate(ctx, r, now, q)
	}
	return page, damaged(err, q.Stream)
}

func (so *streamOrder) upToDate(ctx context.Context, r *snapshot, n counters, q store.RecordQuery) (store.RecordPage, error) {
	if err := so.load(n); err != nil {
		return store.RecordPage{}, err
	}
	if err := so.takeIn(ctx, r, n, q.Order); err != nil {
		return store.RecordPage{}, err
	}
	return so.list(ctx, r.reader, n, q)
}

// load goes on where the process before this one had come.
func (so *streamOrder) load(n counters) (err error) {
	if so.loaded {
		return nil
	}
	if so.through, so.rows, err = so.sorted.load(); err != nil {
		return err
	}
	so.loaded, so.past = true, so.through > 0
	if so.through > n.last {
		return so.reset()
	}
	return nil
}

func (so *streamOrder) reset() error {
	so.through, so.rows, so.past = 0, 0, false
	return so.sorted.reset()
}

// takeIn brings the order up to the snapshot. What it took in stays when ctx
// ends it.
func (so *streamOrder) takeIn(ctx context.Context, r *snapshot, n counters, by store.Order) error {
	if so.rows > 2*(n.live+n.tombstones)+1<<16 { // most of it is superseded
		if err := so.reset(); err != nil {
			return err
		}
	}
	if so.through == n.last {
		return nil
	}
	var fresh []orderRow
	bytes := 0
	settle := func() (err error) {
		err = so.sorted.add(fresh, so.through, so.rows)
		fresh, bytes = fresh[:0], 0
		return err
	}
	err := r.walk(n, so.through, false, func(e entry) (bool, error) {
		row := orderRow{key: sortKey(by, e.Change), version: e.version, deleted: e.Op == store.Delete, size: uint32(len(e.Data))}
		fresh = append(fresh, row)
		so.through = e.version
		so.rows++
		if bytes += row.memory(); bytes < so.sorted.limit {
			return true, nil
		}
		if err := settle(); err != nil {
			return false, err
		}
		return true, r.interrupted(ctx)
	})
	if failed := settle(); failed != nil {
		return failed
	}
	if err == nil {
		so.through = n.last
	}
	return err
}

// interrupted says why a long read should end: the engine closes when snapshots do.
func (r *snapshot) interrupted(ctx context.Context) error {
	if l, _ := r.s.space.state(); l == halted {
		return store.ErrNoSpace
	}
	select {
	case <-r.s.closing:
		return store.ErrClosed
	default:
		return ctx.Err()
	}
}

// sortKey is what a record is ordered by; it sorts as bytes.
func sortKey(by store.Order, c store.Change) string {
	if by == store.ByKey {
		return string(c.Key)
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(c.Key)), uint64(c.EmittedAt)^1<<63)
	return string(append(b, c.Key...))
}

// list reads a page from an order that is up to the snapshot.
func (so *streamOrder) list(ctx context.Context, r reader, n counters, q store.RecordQuery) (store.RecordPage, error) {
	dead, err := newDeadView(r, n.number)
	if err != nil {
		return store.RecordPage{}, err
	}
	dead.chunks = make(map[uint64]*deadChunk)
	m, err := so.sorted.seek(q.AfterKey, q.Descending)
	if err != nil {
		return store.RecordPage{}, err
	}
	p := pager{q: q, limit: bounded(q.Limit), most: orderedScan, page: store.RecordPage{AfterKey: q.AfterKey, Version: n.last}}
	for {
		rows, err := m.some(min(orderedAtOnce, p.limit+1-len(p.page.Records)), func(row orderRow) (bool, error) {
			if row.deleted && !q.Deleted {
				return false, nil
			}
			superseded, err := dead.has(row.version)
			return !superseded, err
		})
		if err != nil || len(rows) == 0 {
			return p.page, err
		}
		found, err := r.entriesAt(n.number, rows)
		if err != nil {
			return p.page, err
		}
		for i, row := range rows {
			if sortKey(q.Order, found[i].Change) != row.key {
				return p.page, damagef("version %d has another key than its order says", row.version)
			}
			if !p.take(found[i]) {
				return p.page, nil
			}
			p.page.AfterKey = row.key
		}
		if err := ctx.Err(); err != nil {
			return p.page, err
		}
	}
}

// entriesAt reads the versions of rows, each segment once.
func (r reader) entriesAt(number uint64, rows []orderRow) ([]entry, error) {
	found, byVersion := make([]entry, len(rows)), make([]int, len(rows))
	for i := range byVersion {
		byVersion[i] = i
	}
	slices.SortFunc(byVersion, func(a, b int) int {
		if rows[a].version < rows[b].version {
			return -1
		}
		return 1
	})
	prefix := numbered(kindSegment, number)
	it := r.txn.NewIterator(engine.IteratorOptions{Prefix: prefix, Reverse: true})
	defer it.Close()
	for len(byVersion) > 0 {
		first := rows[byVersion[0]].version
		if it.Seek(numbered(kindSegment, number, first)); !it.ValidForPrefix(prefix) {
			return nil, damagef("version %d is missing", first)
		}
		payload, err := r.value(it.Item(), it.Item().KeyCopy(nil))
		if err != nil {
			return nil, err
		}
		for e, err := range entries(payload) {
			if err != nil {
				return nil, err
			}
			if e.version == rows[byVersion[0]].version {
				e.Key, e.Data = slices.Clone(e.Key), slices.Clone(e.Data)
				e.raw = nil // so that the segment can go
				found[byVersion[0]] = e
				if byVersion = byVersion[1:]; len(byVersion) == 0 {
					break
				}
			}
		}
		if len(byVersion) > 0 && rows[byVersion[0]].version == first {
			return nil, damagef("version %d is missing", first)
		}
	}
	return found, nil
}
