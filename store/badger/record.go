package badger

import (
	"cmp"
	"context"
	"slices"

	engine "github.com/dgraph-io/badger/v4"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// Record implements store.Store.
func (s *records) Record(ctx context.Context, connection store.ConnectionID, stream store.Stream,
	k string) (store.Record, error) {
	h1, h2 := bulk.HashKey([]byte(k))
	id := streamKey{connection, stream}
	var seen memoryView
	var loads uint64
	r, err := s.snapshot(ctx, func() {
		seen.take(cmp.Or(s.visible.streams[id], s.visible.idle.get(id)))
		loads = s.visible.idle.loads
	})
	if err != nil {
		return store.Record{}, err
	}
	defer r.close()
	n, ok, err := r.counters(connection, stream)
	if err != nil || !ok {
		return store.Record{}, missing(err, "record %q of stream %s", k, stream)
	}
	if seen.st == nil {
		st, err := s.loadIdle(ctx, r.reader, id, n, loads)
		if err != nil && ctx.Err() != nil {
			return store.Record{}, ctx.Err()
		}
		seen.take(st) // nil if the stream is damaged somewhere; the record may be intact
	}
	at, ok, err := seen.find(r.reader, n, h1, h2)
	if err != nil || !ok {
		return store.Record{}, missing(damaged(err, stream), "record %q of stream %s", k, stream)
	}
	found, err := r.entriesAt(n.number, []uint64{at.At()})
	if err == nil && string(found[0].Key) != k {
		err = store.Corrupt("version %d has another key than the index says", at.At())
	}
	if err != nil {
		return store.Record{}, damaged(err, stream)
	}
	return recordOf(found[0], stream), nil
}

// entriesAt reads the given versions, each segment once. The entries share no memory with a segment.
func (r reader) entriesAt(number uint64, versions []uint64) ([]bulk.Entry, error) {
	found, wanted := make([]bulk.Entry, len(versions)), make([]int, len(versions)) // indexes, by version
	for i := range wanted {
		wanted[i] = i
	}
	slices.SortFunc(wanted, func(a, b int) int { return cmp.Compare(versions[a], versions[b]) })
	prefix := numbered(kindSegment, number)
	it := r.txn.NewIterator(engine.IteratorOptions{Prefix: prefix, Reverse: true})
	defer it.Close()
	for len(wanted) > 0 {
		first := versions[wanted[0]]
		if it.Seek(numbered(kindSegment, number, first)); !it.ValidForPrefix(prefix) {
			return nil, store.Corrupt("version %d is missing", first)
		}
		payload, err := r.value(it.Item(), it.Item().KeyCopy(nil))
		if err != nil {
			return nil, err
		}
		for e, err := range bulk.Entries(payload) {
			if err != nil {
				return nil, err
			}
			if len(wanted) > 0 && e.Version == versions[wanted[0]] {
				e.Key, e.Data, e.Raw = slices.Clone(e.Key), slices.Clone(e.Data), nil
				found[wanted[0]], wanted = e, wanted[1:]
			}
			if len(wanted) == 0 {
				break
			}
		}
		if len(wanted) > 0 && versions[wanted[0]] == first {
			return nil, store.Corrupt("version %d is missing", first)
		}
	}
	return found, nil
}

// A memoryView is the part of a stream's index in memory that belongs to a snapshot.
type memoryView struct {
	st     *stream
	tables []*bulk.Table // newest first
	runs   []*bulk.IndexRun
	shown  uint64
}

// take fills the view from st, which is nil for a stream not in memory. The caller holds visible's lock.
func (v *memoryView) take(st *stream) {
	if st == nil {
		return
	}
	v.st, v.runs, v.shown = st, st.runs, st.shown
	v.tables = append(v.tables, st.mem)
	for i := len(st.frozen) - 1; i >= 0; i-- {
		v.tables = append(v.tables, st.frozen[i])
	}
}

// find returns the row of a key as of snapshot r.
func (v *memoryView) find(r reader, n counters, h1, h2 uint64) (bulk.Row, bool, error) {
	if v.st == nil {
		return r.search(n, h1, h2)
	}
	for _, t := range v.tables {
		v.st.rows.RLock()
		found, ok := t.Get(h1, h2)
		v.st.rows.RUnlock()
		if ok && found.At() > v.shown {
			return r.search(n, h1, h2) // a commit in flight writes this key
		}
		if ok {
			return found, true, nil
		}
	}
	for _, run := range slices.Backward(v.runs) {
		if run.Filter.Memory() > 0 && !run.Filter.Has(h1, h2) {
			continue
		}
		if found, ok, err := r.find(n.number, run.RunInfo, h1, h2); err != nil || ok {
			return found, ok, err
		}
	}
	return bulk.Row{}, false, nil
}

// search finds a key without the index in memory: in the segments that no run covers, then in each run. It takes some
// milliseconds.
func (r reader) search(n counters, h1, h2 uint64) (bulk.Row, bool, error) {
	lay, err := readLayout(r.get, n.number)
	if err != nil {
		return bulk.Row{}, false, err
	}
	var newest bulk.Row
	err = r.scan(numbered(kindSegment, n.number), numbered(kindSegment, n.number, lay.Indexed+1), false,
		func(_, payload []byte) (bool, error) {
			for e, err := range bulk.Entries(payload) {
				if err != nil {
					return false, err
				}
				if k1, k2 := bulk.HashKey(e.Key); k1 == h1 && k2 == h2 {
					newest = bulk.Row{H1: h1, H2: h2, Version: e.Version}
				}
			}
			return true, nil
		})
	if err != nil || newest.Version != 0 {
		return newest, err == nil, err
	}
	for _, info := range slices.Backward(lay.Runs) {
		if found, ok, err := r.find(n.number, info, h1, h2); err != nil || ok {
			return found, ok, err
		}
	}
	return bulk.Row{}, false, nil
}

// Memory returns the bytes that the indexes of the streams in use occupy.
func (s *disk) Memory() int64 {
	s.visible.RLock()
	defer s.visible.RUnlock()
	n := s.visible.idle.bytes
	for _, st := range s.visible.streams {
		n += st.footprint.Load()
	}
	return n
}
