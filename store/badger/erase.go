package badger

import (
	"context"
	"encoding/binary"

	"github.com/sluicehost/sluice/store"
)

// What is erased may be more than a transaction takes. The first commit decides:
// it leaves a note under kindErase, and from then on readers see nothing of the
// thing. The rest goes in steps, the note with the last of them. A store that
// finds a note when it is opened goes on where it ended.
//
// Invariant: a stream loses its counters before anything else of it goes, and a
// timeline its last event before the one in front, so that Verify and images
// are right between any two steps.
const (
	erasedConnection = "connection" // by id: states, gaps, streams
	erasedStream     = "stream"     // by number: what is kept under it
	erasedRun        = "run"        // by id: its events
)

// being is the key of the note that the thing is being erased.
func being(what, id string) []byte { return key(kindErase, what, id) }

func streamNote(number uint64) []byte {
	return being(erasedStream, string(binary.BigEndian.AppendUint64(nil, number)))
}

// eraseAtOnce is how many keys go in one transaction, within opBytes.
const eraseAtOnce = 200

// DeleteConnection implements store.Store.
func (s *Store) DeleteConnection(ctx context.Context, id store.ConnectionID, erase bool) error {
	s.whole.RLock()
	defer s.whole.RUnlock()
	var left bool
	err := s.do(ctx, true, func(g *group) error {
		if err := idle(g, id); err != nil {
			return err
		}
		k := key(kindConnection, string(id))
		_, known, err := g.get(k)
		if err != nil {
			return err
		}
		left = erase && g.c.base.remains(string(id))
		if !known && !left {
			return missing(nil, "connection %s", id)
		}
		g.c.forgetGrant(g, id)
		if left {
			g.put(being(erasedConnection, string(id)), newValue(0))
		}
		return g.remove(k)
	})
	if err != nil || !left {
		return err
	}
	return s.eraseConnection(ctx, string(id))
}

// remains says that something of a connection is left beside its runs.
func (r reader) remains(id string) bool {
	for _, kind := range []byte{kindCounters, kindState, kindGap} {
		if prefix := key(kind, id, ""); len(r.some(prefix, nil, nil, 1)) > 0 {
			return true
		}
	}
	return false
}

// eraseConnection finishes what a note says. One goroutine does so at a time:
// for another one the connection may be there again.
func (s *Store) eraseConnection(ctx context.Context, id string) error {
	select {
	case s.erasing <- struct{}{}:
		defer func() { <-s.erasing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return err
	}
	_, noted, err := r.get(being(erasedConnection, id))
	r.close()
	if err != nil || !noted {
		return err
	}
	for _, kind := range []byte{kindState, kindGap} {
		if err := s.drop(ctx, key(kind, id, "")); err != nil {
			return err
		}
	}
	for {
		number, err := s.disownStream(ctx, id)
		if err != nil {
			return err
		}
		if number == 0 {
			return s.do(ctx, false, func(g *group) error {
				g.freeBulk()
				return g.remove(being(erasedConnection, id))
			})
		}
		if err := s.eraseStream(ctx, number); err != nil {
			return err
		}
	}
}

// disownStream takes the counters of a connection's first stream and notes that
// what is under its number goes; 0 when there is none.
func (s *Store) disownStream(ctx context.Context, id string) (number uint64, err error) {
	err = s.do(ctx, true, func(g *group) error {
		number = 0
		found := g.c.base.some(key(kindCounters, id, ""), nil, nil, 1)
		if len(found) == 0 {
			return nil
		}
		b, _, err := g.get(found[0])
		if err != nil {
			return err
		}
		n, err := decodeCounters(b)
		if err != nil {
			return err
		}
		c, name := g.c, streamKey{store.ConnectionID(id), store.Stream(lastPart(found[0]))}
		if st := c.streams[name]; st != nil {
			c.forget(name)
			g.undo = append(g.undo, func() { c.remember(name, st) })
		}
		number = n.number
		g.put(streamNote(number), newValue(0))
		return g.remove(found[0])
	})
	return number, err
}

// eraseStream deletes what is kept under the number of a stream that is no more.
func (s *Store) eraseStream(ctx context.Context, number uint64) error {
	s.windows.forget(number)
	for _, kind := range []byte{kindSegment, kindPage, kindFilter, kindDeadList, kindDeadChunk, kindLayout} {
		if err := s.drop(ctx, numbered(kind, number)); err != nil {
			return err
		}
	}
	return s.unnote(ctx, streamNote(number))
}

// freeBulk leaves the newest bulk file when most of it is garbage, so that it is
// deleted or compacted as the others are, and erased records leave the disk.
func (g *group) freeBulk() {
	c := g.c
	if f := c.tail.Files[c.tail.File]; f.MostlyGarbage() {
		c.tail.File++
		g.undo = append(g.undo, func() { c.tail.File-- })
	}
	c.startJob(nil)
}
