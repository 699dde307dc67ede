package badger

import (
	"context"
	"errors"

	engine "github.com/dgraph-io/badger/v4"

	"github.com/sluicehost/sluice/store"
)

// drop deletes the keys with prefix.
func (s *Store) drop(ctx context.Context, prefix []byte) error {
	return s.inSteps(ctx, func(r reader, after []byte, most int) [][]byte {
		return r.some(prefix, after, nil, most)
	}, (*group).remove)
}

// inSteps hands the keys that list finds to each, so many in one commit.
func (s *Store) inSteps(ctx context.Context, list func(r reader, after []byte, most int) [][]byte, each func(*group, []byte) error) error {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return err
	}
	none := len(list(r.reader, nil, 1)) == 0 // as it mostly is: that takes no commit
	r.close()
	if none {
		return nil
	}
	var after []byte
	for {
		var keys [][]byte
		op := func(g *group) error {
			keys = list(g.c.base, after, eraseAtOnce)
			for _, k := range keys {
				if err := each(g, k); err != nil {
					return err
				}
			}
			return nil
		}
		if err := s.await(ctx, &item{op: op, barrier: true, bytes: opBytes}); err != nil || len(keys) < eraseAtOnce {
			return err
		}
		after = keys[len(keys)-1]
	}
}

func (s *Store) unnote(ctx context.Context, note []byte) error {
	return s.do(ctx, false, func(g *group) error { return g.remove(note) })
}

// tidy finishes what was being erased when the process before this one ended,
// and deletes what expired meanwhile.
func (s *Store) tidy() {
	ctx := context.Background() // what is queued ends when the store closes
	s.whole.RLock()
	err := s.finishErasing(ctx)
	s.whole.RUnlock()
	if err == nil {
		err = s.Sweep(ctx)
	}
	if err != nil && !errors.Is(err, store.ErrClosed) && s.stopped() == nil {
		s.opts.Logger.Warn("tidy up", "err", err)
	}
}

func (s *Store) finishErasing(ctx context.Context) error {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return err
	}
	var notes [][]byte
	r.keys([]byte{kindErase}, func(k []byte) bool {
		notes = append(notes, k)
		return true
	})
	r.close()
	for _, note := range notes {
		what, _ := firstPart(note)
		id := lastPart(note)
		switch what {
		case erasedConnection:
			err = s.eraseConnection(ctx, id)
		case erasedStream:
			err = s.eraseStream(ctx, lastNumber(note))
		case erasedRun:
			err = s.pruneRun(ctx, id)
		default:
			err = store.Corrupt("key %.40q says what nobody erases", note)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// some lists up to most keys with prefix behind after and below end, where these
// are given.
func (r reader) some(prefix, after, end []byte, most int) [][]byte {
	it := r.txn.NewIterator(engine.IteratorOptions{Prefix: prefix})
	defer it.Close()
	seek := prefix
	if after != nil {
		seek = append(append([]byte(nil), after...), 0)
	}
	var keys [][]byte
	for it.Seek(seek); it.ValidForPrefix(prefix) && len(keys) < most; it.Next() {
		k := it.Item().KeyCopy(nil)
		if end != nil && string(k) >= string(end) {
			break
		}
		keys = append(keys, k)
	}
	return keys
}

// somebackwards lists up to most numbered keys with prefix from the last one on,
// below the key before where that is given.
func (r reader) somebackwards(prefix, before []byte, most int) [][]byte {
	it := r.txn.NewIterator(engine.IteratorOptions{Prefix: prefix, Reverse: true})
	defer it.Close()
	seek := before
	if seek == nil {
		seek = append(append([]byte(nil), prefix...), 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF)
	}
	var keys [][]byte
	for it.Seek(seek); it.ValidForPrefix(prefix) && len(keys) < most; it.Next() {
		if k := it.Item().KeyCopy(nil); before == nil || string(k) < string(before) {
			keys = append(keys, k)
		}
	}
	return keys
}
