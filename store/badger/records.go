package badger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// pageBytes bounds the data in a page of records; the record that exceeds it is still included.
const pageBytes = 8 << 20

// Streams implements store.Store.
func (s *records) Streams(ctx context.Context, connection store.ConnectionID) ([]store.StreamStats, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if _, erased, err := r.get(eraseNote(erasedConnection, string(connection))); err != nil || erased {
		return nil, err
	}
	prefix := countersKey(connection, "")
	var all []store.StreamStats
	err = r.scan(prefix, nil, false, func(k, payload []byte) (bool, error) {
		n, err := decodeCounters(payload)
		if err != nil {
			return false, damaged(err, store.Stream(k[len(prefix):]))
		}
		all = append(all, n.stats(store.Stream(k[len(prefix):])))
		return true, ctx.Err()
	})
	return all, err
}

// Limits on the records, and bytes of their data, for which one page calls Match.
const (
	scanRecords = 10_000
	scanBytes   = 64 << 20
)

// Records implements store.Store. A page ends early when its data exceeds 8 MiB.
func (s *records) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	return s.windows.records(ctx, q, func(ctx context.Context) (*snapshot, error) { return s.snapshot(ctx, nil) })
}

// An opener opens a snapshot to read from.
type opener func(context.Context) (*snapshot, error)

// records reads one page in the requested order.
func (ws *windows) records(ctx context.Context, q store.RecordQuery, open opener) (store.RecordPage, error) {
	switch q.Order {
	case "", store.ByVersion:
	case store.ByKey, store.ByEmitted:
		return ws.page(ctx, q, open)
	default:
		return store.RecordPage{}, errOrder
	}
	r, err := open(ctx)
	if err != nil {
		return store.RecordPage{}, err
	}
	defer r.close()
	return r.byVersion(ctx, q)
}

// errOrder reports a mistake in the calling program.
var errOrder = errors.New("records have no such order")

func (r reader) byVersion(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	n, ok, err := r.counters(q.Connection, q.Stream)
	if err != nil || !ok {
		return store.RecordPage{}, err
	}
	if q.After > n.last {
		return store.RecordPage{Version: n.last}, store.ErrCursorExpired
	}
	p := pager{q: q, limit: bounded(q.Limit), most: scanRecords, expected: min(n.live+n.tombstones, n.last-q.After),
		page: store.RecordPage{After: q.After, Version: n.last}}
	err = r.walk(n, q.After, q.Descending, func(e bulk.Entry) (bool, error) {
		if e.Op == store.Delete && !q.Deleted {
			return true, nil
		}
		more := p.take(e)
		if more {
			p.page.After = e.Version
		}
		return more, ctx.Err()
	})
	return p.page, damaged(err, q.Stream)
}

// A pager fills one page.
type pager struct {
	q              store.RecordQuery
	limit, most    int    // records in the page, and calls of Match
	bytes          int    // of data in the page
	asked, scanned int    // calls of Match, and bytes of data passed to it
	expected       uint64 // records that the page may have; 0 if unknown
	page           store.RecordPage
}

// take adds a record to the page unless it does not match. It returns false when the page is full and the record
// belongs to the next one.
func (p *pager) take(e bulk.Entry) bool {
	if len(p.page.Records) == p.limit || p.bytes > pageBytes || p.asked == p.most || p.scanned > scanBytes {
		p.page.More = true
		return false
	}
	rec := recordOf(e, p.q.Stream)
	if p.q.Match != nil {
		p.asked++
		p.scanned += len(e.Data)
		if !p.q.Match(rec) {
			return true
		}
	}
	rec.Data = slices.Clone(rec.Data)
	p.bytes += len(rec.Data)
	if p.page.Records == nil && p.q.Match == nil {
		p.page.Records = make([]store.Record, 0, min(uint64(p.limit), p.expected)) // #nosec G115 -- a positive number
	}
	p.page.Records = append(p.page.Records, rec)
	return true
}

func (r reader) counters(c store.ConnectionID, s store.Stream) (counters, bool, error) {
	b, ok, err := r.get(countersKey(c, s))
	if err != nil || !ok {
		return counters{}, false, damaged(err, s)
	}
	if _, erased, err := r.get(eraseNote(erasedConnection, string(c))); err != nil || erased {
		return counters{}, false, err
	}
	n, err := decodeCounters(b)
	return n, err == nil, damaged(err, s)
}

// recordOf returns the record of an entry, whose data it shares.
func recordOf(e bulk.Entry, s store.Stream) store.Record {
	rec := store.Record{
		Stream: s, Key: string(e.Key), Compound: e.Compound, Version: e.Version, RunID: store.RunID(e.Run),
		EmittedAt: time.UnixMicro(e.EmittedAt).UTC(), IngestedAt: time.UnixMicro(e.Ingested).UTC(),
		Deleted: e.Op == store.Delete,
	}
	if !rec.Deleted {
		rec.Data = json.RawMessage(e.Data)
	}
	return rec
}

// walk calls fn for the current records and tombstones of a stream in version order, starting behind version after, or
// in descending order starting before it (0 is the end), until fn returns false.
//
// Every version between the bounds is in a segment or superseded. walk checks this as it goes, so a segment that the
// engine lost is reported as damage and never shortens the list.
func (r reader) walk(n counters, after uint64, descending bool, fn func(bulk.Entry) (bool, error)) error {
	dead, err := newDeadView(r, n.number)
	if err != nil {
		return err
	}
	w := walker{r: r, n: n, dead: dead, fn: fn}
	if descending {
		return w.down(after)
	}
	return w.up(after)
}

type walker struct {
	r    reader
	n    counters
	dead *deadView
	fn   func(bulk.Entry) (bool, error)
	seen uint64 // number of current records and tombstones seen
	done bool
}

func (w *walker) up(after uint64) error {
	next := after + 1
	from := w.r.segmentOf(w.n.number, next)
	err := w.r.scan(numbered(kindSegment, w.n.number), from, false, func(_, payload []byte) (bool, error) {
		for e, err := range bulk.Entries(payload) {
			if err != nil {
				return false, err
			}
			if e.Version < next {
				continue
			}
			if err := w.hole(next, e.Version); err != nil {
				return false, err
			}
			next = e.Version + 1
			if err := w.visit(e); err != nil || w.done {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil || w.done {
		return err
	}
	if err := w.hole(next, w.n.last+1); err != nil {
		return err
	}
	return w.count(after == 0)
}

func (w *walker) down(before uint64) error {
	before = cmp.Or(before, w.n.last+1)
	whole := before > w.n.last
	next := before // the version above the expected one
	if next <= 1 {
		return nil
	}
	seek := numbered(kindSegment, w.n.number, before-1)
	err := w.r.scan(numbered(kindSegment, w.n.number), seek, true, func(_, payload []byte) (bool, error) {
		var all []bulk.Entry
		for e, err := range bulk.Entries(payload) {
			if err != nil {
				return false, err
			}
			all = append(all, e)
		}
		for _, e := range slices.Backward(all) {
			if e.Version >= next {
				continue
			}
			if err := w.hole(e.Version+1, next); err != nil {
				return false, err
			}
			next = e.Version
			if err := w.visit(e); err != nil || w.done {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil || w.done {
		return err
	}
	if err := w.hole(1, next); err != nil {
		return err
	}
	return w.count(whole)
}

// count compares the number of entries that a walk over the whole stream met with the counters.
func (w *walker) count(whole bool) error {
	if want := w.n.live + w.n.tombstones; whole && w.seen != want {
		return store.Corrupt("%d records and tombstones where the counters say %d", w.seen, want)
	}
	return nil
}

// hole checks that all versions from a up to but not including b are superseded.
func (w *walker) hole(a, b uint64) error {
	if a >= b {
		return nil
	}
	ok, err := w.dead.span(a, b-1)
	if err == nil && !ok {
		err = store.Corrupt("records of versions %d to %d are missing", a, b-1)
	}
	return err
}

func (w *walker) visit(e bulk.Entry) error {
	superseded, err := w.dead.has(e.Version)
	if err != nil || superseded {
		return err
	}
	w.seen++
	more, err := w.fn(e)
	w.done = !more
	return err
}

// segmentOf returns the key of the segment that holds version v or, if there is none, a key to seek the next one from.
func (r reader) segmentOf(number, v uint64) []byte {
	at := numbered(kindSegment, number, v)
	if k := r.lastKey(numbered(kindSegment, number), at); k != nil {
		return k
	}
	return at
}
