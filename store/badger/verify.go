package badger

import (
	"bytes"
	"context"

	engine "github.com/dgraph-io/badger/v4"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// Verify implements store.Store. It checks the checksum of every value, reads every file, recounts every stream from
// its segments and again from its index, and compares the chain with the whole witness.
func (s *disk) Verify(ctx context.Context) error {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.verifyValues(ctx); err != nil {
		return err
	}
	if err := s.verifyFiles(ctx, r.reader); err != nil {
		return err
	}
	err = r.scan([]byte{kindCounters}, nil, false, func(k, payload []byte) (bool, error) {
		n, err := decodeCounters(payload)
		if err == nil {
			err = r.verifyStream(ctx, n)
		}
		return true, damaged(err, store.Stream(lastPart(k)))
	})
	if err != nil {
		return err
	}
	head, err := r.chain()
	if err != nil || head.seq == 0 || s.dir == "" || s.damage != nil {
		return err
	}
	return s.writer.witness.verify(head)
}

// verifyValues reads every value and checks that no run lacks an event.
func (r reader) verifyValues(ctx context.Context) error {
	it := r.txn.NewIterator(engine.IteratorOptions{})
	defer it.Close()
	next := uint64(0)
	var run []byte
	for it.Rewind(); it.Valid(); it.Next() {
		k := it.Item().KeyCopy(nil)
		payload, err := r.value(it.Item(), k)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if k[0] != kindEvent {
			continue
		}
		of := k[:len(k)-8]
		if !bytes.Equal(of, run) {
			run, next = of, 0
		}
		if lastNumber(k) != next {
			return store.Corrupt("run %.40q lacks event %d", of[3:], next)
		}
		next++
		_ = payload
	}
	return nil
}

// verifyStream recounts one stream.
func (r reader) verifyStream(ctx context.Context, n counters) error {
	e, got := bulk.NewHasher(), counters{}
	err := r.walk(n, 0, false, func(en bulk.Entry) (bool, error) {
		e1, e2 := e.Element(en.Version, en.Change)
		got.sum.add(e1, e2)
		if en.Op == store.Delete {
			got.tombstones++
		} else {
			got.live++
		}
		return true, ctx.Err()
	})
	if err != nil {
		return err
	}
	if err := got.compare(n, "segments"); err != nil {
		return err
	}
	return r.verifyIndex(n)
}

func (got counters) compare(n counters, where string) error {
	if got.live != n.live || got.tombstones != n.tombstones || got.sum != n.sum {
		return store.Corrupt("%s hold %d records and %d tombstones, the counters say %d and %d; sums equal: %v",
			where, got.live, got.tombstones, n.live, n.tombstones, got.sum == n.sum)
	}
	return nil
}

// verifyIndex recounts a stream from its index: the rows of the runs, overridden by the versions that no run covers
// yet.
func (r reader) verifyIndex(n counters) error {
	lay, err := readLayout(r.get, n.number)
	if err != nil {
		return err
	}
	st := &stream{counters: n, layout: lay, mem: bulk.NewTable(), dead: make(deadSet), heavy: make(map[uint64]bool)}
	if err := st.loadDead(r); err != nil {
		return err
	}
	if err := st.replay(r); err != nil {
		return err
	}
	var got counters
	tally := func(row bulk.Row) error {
		got.sum.add(row.E1, row.E2)
		if row.Deleted() {
			got.tombstones++
		} else {
			got.live++
		}
		return nil
	}
	var cursors []*bulk.RowCursor
	for _, info := range lay.Runs {
		c, err := r.rows(n.number, info)
		if err != nil {
			return err
		}
		cursors = append(cursors, c)
		if _, err := r.loadRun(n.number, info); err != nil {
			return err
		}
	}
	err = bulk.MergeRows(cursors, func(row bulk.Row) error {
		if _, newer := st.mem.Get(row.H1, row.H2); newer {
			return nil
		}
		return tally(row)
	})
	if err != nil {
		return err
	}
	for _, row := range st.mem.Rows() {
		_ = tally(row)
	}
	return got.compare(n, "index runs")
}
