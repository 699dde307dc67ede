package badger

import (
	"context"
	"encoding/binary"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// Records are stored in the order of their versions. Pages in another order come from windows: a walk over the stream
// keeps the sort keys nearest to the requested place, as many as fit into windowBytes (some fifty thousand). Later
// pages are served from the window, which is brought up to date with new writes, until a listing leaves it and another
// walk is needed. Only one walk runs at a time, so requests for pages in many places occupy at most one core.
const (
	maxWindows     = 8    // windows in memory; a View keeps one
	orderedAtOnce  = 128  // records read at a time
	orderedScan    = 1000 // calls of Match for one page: each record may be in another segment
	windowRowBytes = 48   // of a row, without its key
)

// A windowRow is one version of one key.
type windowRow struct {
	key     string // see sortKey
	version uint64
	size    uint32 // of its data
	deleted bool
}

// A window holds the rows of a stream with low <= key < high as of version through. It may still contain superseded
// rows. It is immutable.
type window struct {
	streamKey
	by        store.Order
	number    uint64 // of the stream
	low, high string
	end       bool   // no upper bound; high is ""
	first     uint64 // newest version of the stream at the first walk
	through   uint64
	rows      []windowRow // sorted by key
}

// has reports whether the window covers the rows where a listing continues: from at on or, if descending, below it. An
// empty at stands for the beginning or, if descending, the end.
func (w *window) has(at string, descending bool) bool {
	if descending {
		return w.end && (at == "" || at > w.low) || !w.end && at != "" && at <= w.high && at > w.low
	}
	return at >= w.low && (w.end || at < w.high)
}

// stale reports whether so much was written since the first walk that another walk is hardly more expensive.
func (w *window) stale(n counters) bool { return n.last-w.first > n.live/4+1<<14 }

// windows holds the most recently used windows.
type windows struct {
	most   int
	mu     sync.Mutex // guards kept
	cached []*window  // most recently used last
}

func (ws *windows) find(id streamKey, by store.Order, at string, descending bool) *window {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range slices.Backward(ws.cached) {
		if w.streamKey == id && w.by == by && w.has(at, descending) {
			return w
		}
	}
	return nil
}

// keep adds w in place of old, which may be nil.
func (ws *windows) keep(w, old *window) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.cached = append(slices.DeleteFunc(ws.cached, func(k *window) bool { return k == old || k == w }), w)
	if len(ws.cached) > ws.most {
		ws.cached = slices.Delete(ws.cached, 0, 1)
	}
}

// forget drops the windows of a stream that is erased.
func (ws *windows) forget(number uint64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.cached = slices.DeleteFunc(ws.cached, func(k *window) bool { return k.number == number })
}

// page reads one page. It opens the snapshot after choosing a window, so the snapshot is never older than the window.
func (ws *windows) page(ctx context.Context, q store.RecordQuery, open opener) (store.RecordPage, error) {
	at := q.AfterKey
	if at != "" && !q.Descending {
		at += "\x00"
	}
	id := streamKey{q.Connection, q.Stream}
	w := ws.find(id, q.Order, at, q.Descending)
	r, err := open(ctx)
	if err != nil {
		return store.RecordPage{}, err
	}
	defer r.close()
	n, ok, err := r.counters(q.Connection, q.Stream)
	if err != nil || !ok {
		return store.RecordPage{}, err
	}
	l := lister{r: r, n: n, pager: pager{
		q: q, limit: bounded(q.Limit), most: orderedScan,
		page: store.RecordPage{AfterKey: q.AfterKey, Version: n.last},
	}}
	if l.dead, err = newDeadView(r.reader, n.number); err != nil {
		return l.page, damaged(err, q.Stream)
	}
	l.dead.chunks = make(map[uint64]*deadChunk)
	for {
		old := w
		if w, err = l.window(ctx, old, at); err != nil {
			return store.RecordPage{}, damaged(err, q.Stream)
		}
		ws.keep(w, old)
		full, err := l.list(ctx, w, at)
		if err != nil || full || q.Descending && w.low == "" || !q.Descending && w.end {
			return l.page, damaged(err, q.Stream)
		}
		if at = w.high; q.Descending {
			at = w.low
		}
		if w = ws.find(id, q.Order, at, q.Descending); w != nil && w.through > n.last {
			w = nil // from a newer snapshot
		}
	}
}

// A lister fills one page from windows.
type lister struct {
	pager
	r    *snapshot
	n    counters
	dead *deadView
}

// window returns a window that covers at as of the snapshot. This is found, unless that is nil or cannot be brought up
// to date.
func (l *lister) window(ctx context.Context, found *window, at string) (*window, error) {
	if found != nil && found.number == l.n.number && !found.stale(l.n) {
		w, err := l.update(ctx, found)
		if err != nil || w.has(at, l.q.Descending) {
			return w, err
		}
	}
	s := l.r.s
	select {
	case s.walking <- struct{}{}:
		defer func() { <-s.walking }()
	case <-s.closing:
		return nil, store.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w := &window{streamKey: streamKey{l.q.Connection, l.q.Stream}, by: l.q.Order, number: l.n.number,
		first: l.n.last, end: true}
	switch {
	case !l.q.Descending:
		w.low = at
	case at != "":
		w.high, w.end = at, false
	}
	return l.update(ctx, w)
}

// update returns w as of the snapshot: with what was written after w.through and, if that is too much, without the rows
// farthest away.
func (l *lister) update(ctx context.Context, w *window) (*window, error) {
	if w.through == l.n.last {
		return w, nil
	}
	next, most := *w, l.r.s.opts.windowBytes
	var fresh []windowRow
	var k []byte
	bytes := 0
	err := l.r.walk(l.n, w.through, false, func(e bulk.Entry) (bool, error) {
		if e.Version%4096 == 0 {
			if err := l.r.interrupted(ctx); err != nil {
				return false, err
			}
		}
		k = sortKey(k[:0], next.by, e.Change)
		if string(k) < next.low || !next.end && string(k) >= next.high {
			return true, nil
		}
		fresh = append(fresh, windowRow{string(k), e.Version, uint32(len(e.Data)), e.Op == store.Delete})
		if bytes += len(k) + windowRowBytes; bytes >= most {
			next.add(fresh, most, l.q.Descending)
			fresh, bytes = fresh[:0], 0
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	next.add(fresh, most, l.q.Descending)
	next.through = l.n.last
	return &next, nil
}

// add merges rows in and trims the window to about most bytes, at its end or, for a descending listing, at its
// beginning.
func (w *window) add(fresh []windowRow, most int, descending bool) {
	slices.SortStableFunc(fresh, func(a, b windowRow) int { return strings.Compare(a.key, b.key) })
	rows := mergeRowsByKey(w.rows, fresh)
	row := func(i int) windowRow { return rows[i] }
	if descending {
		row = func(i int) windowRow { return rows[len(rows)-1-i] }
	}
	bytes, kept := 0, 0
	for ; kept < len(rows); kept++ {
		bytes += len(row(kept).key) + windowRowBytes
		if bytes > most && kept > 0 && row(kept).key != row(kept-1).key {
			break
		}
	}
	switch {
	case kept == len(rows):
		w.rows = rows
	case descending:
		w.rows, w.low = rows[len(rows)-kept:], row(kept-1).key
	default:
		w.rows, w.high, w.end = rows[:kept], row(kept-1).key+"\x00", false
	}
}

func mergeRowsByKey(a, b []windowRow) []windowRow {
	out := make([]windowRow, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].key <= b[0].key {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// list adds the records of a window from at on to the page. It reports whether the page is full.
func (l *lister) list(ctx context.Context, w *window, at string) (bool, error) {
	rows := w.rows
	from := sort.Search(len(rows), func(i int) bool { return rows[i].key >= at })
	rows = rows[from:]
	if l.q.Descending {
		if rows = w.rows; at != "" {
			rows = rows[:from]
		}
	}
	for len(rows) > 0 {
		var some []windowRow
		var err error
		if some, rows, err = l.next(rows); err != nil {
			return false, err
		}
		versions := make([]uint64, len(some))
		for i, row := range some {
			versions[i] = row.version
		}
		found, err := l.r.entriesAt(l.n.number, versions)
		if err != nil {
			return false, err
		}
		for i, row := range some {
			if k := sortKey(nil, l.q.Order, found[i].Change); string(k) != row.key {
				return false, store.Corrupt("version %d has another key than it had before", row.version)
			}
			if !l.take(found[i]) {
				return true, nil
			}
			l.page.AfterKey = row.key
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// next returns the rows to read next, fewer if their data is large, and the remaining rows.
func (l *lister) next(rows []windowRow) (some, rest []windowRow, err error) {
	most := min(orderedAtOnce, l.limit+1-len(l.page.Records))
	for bytes := 0; len(rows) > 0 && len(some) < most && bytes < pageBytes; {
		row := rows[0]
		if rest = rows[1:]; l.q.Descending {
			row, rest = rows[len(rows)-1], rows[:len(rows)-1]
		}
		rows = rest
		if row.deleted && !l.q.Deleted {
			continue
		}
		superseded, err := l.dead.has(row.version)
		if err != nil {
			return nil, nil, err
		}
		if !superseded {
			some = append(some, row)
			bytes += int(row.size)
		}
	}
	return some, rows, nil
}

// interrupted returns the reason why a long read should end, which includes that the engine is about to be closed.
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

// sortKey appends the key by which a record is ordered, compared as bytes.
func sortKey(b []byte, by store.Order, c store.Change) []byte {
	if by == store.ByEmitted {
		b = binary.BigEndian.AppendUint64(b, uint64(c.EmittedAt)^1<<63)
	}
	return append(b, c.Key...)
}
