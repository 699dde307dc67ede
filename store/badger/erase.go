package badger

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/store"
)

// Erasing may take more than one transaction. The first commit decides: it writes a note under kindErase, which hides
// the data from readers. The data is then deleted in steps, and the last step removes the note. When a store is opened,
// it completes the erasures for which it finds notes.
//
// Invariant: a stream's counters are deleted before its other data, and a timeline's events from the last to the first,
// so that Verify and images are correct between any two steps.
const (
	erasedConnection = "connection" // by id: states, gaps, streams
	erasedStream     = "stream"     // by number: all keys under it
	erasedRun        = "run"        // by id: its events
)

// An eraser carries out what the notes say.
type eraser struct {
	s              *disk
	connectionLock chan struct{} // capacity 1: held while a connection is being erased
	partial        sync.RWMutex  // read-locked while data is partly erased; locked to open an image
}

// eraseNote returns the key of the note that something is being erased.
func eraseNote(what, id string) []byte { return key(kindErase, what, id) }

func streamNote(number uint64) []byte {
	return eraseNote(erasedStream, string(binary.BigEndian.AppendUint64(nil, number)))
}

// eraseAtOnce is how many keys are deleted in one transaction, which fit into opBytes.
const eraseAtOnce = 200

// DeleteConnection implements store.Store.
func (s *connections) DeleteConnection(ctx context.Context, id store.ConnectionID, erase bool) error {
	s.eraser.partial.RLock()
	defer s.eraser.partial.RUnlock()
	var left bool
	err := s.queue.do(ctx, true, func(g *group) error {
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
			g.put(eraseNote(erasedConnection, string(id)), newValue(0))
		}
		return g.remove(k)
	})
	if err != nil || !left {
		return err
	}
	return s.eraser.connection(ctx, string(id))
}

// remains reports whether a connection has data other than runs.
func (r reader) remains(id string) bool {
	for _, kind := range []byte{kindCounters, kindState, kindGap, kindHeld, kindFileOf} {
		if prefix := key(kind, id, ""); len(r.listKeys(prefix, nil, false, 1)) > 0 {
			return true
		}
	}
	return false
}

// connection completes the erasure of a connection if there is a note of it. Only one goroutine does so at a time,
// because afterwards the connection may be created again.
func (e *eraser) connection(ctx context.Context, id string) error {
	select {
	case e.connectionLock <- struct{}{}:
		defer func() { <-e.connectionLock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	r, err := e.s.snapshot(ctx, nil)
	if err != nil {
		return err
	}
	_, noted, err := r.get(eraseNote(erasedConnection, id))
	r.close()
	if err != nil || !noted {
		return err
	}
	for _, kind := range []byte{kindState, kindGap, kindHeld, kindUnreferenced, kindFileOf, kindContent} {
		if err := e.drop(ctx, key(kind, id, "")); err != nil {
			return err
		}
	}
	if err := e.deleteContentFiles(ctx, id); err != nil {
		return err
	}
	for {
		number, err := e.disownStream(ctx, id)
		if err != nil {
			return err
		}
		if number == 0 {
			return e.s.queue.do(ctx, false, func(g *group) error {
				g.freeBulk()
				if err := g.remove(key(kindUsage, id)); err != nil {
					return err
				}
				return g.remove(eraseNote(erasedConnection, id))
			})
		}
		if err := e.stream(ctx, number); err != nil {
			return err
		}
	}
}

// deleteContentFiles deletes the files of a connection's long contents.
func (e *eraser) deleteContentFiles(ctx context.Context, id string) error {
	prefix := key(kindLocation, id, "")
	return e.inSteps(ctx, func(r reader, after []byte, most int) [][]byte {
		return r.listKeys(prefix, after, false, most)
	}, func(g *group, k []byte) error {
		b, ok, err := g.get(k)
		if err != nil || !ok {
			return err
		}
		p, err := decodeLocation(b)
		if err != nil {
			return err
		}
		g.removeLater(p.Name)
		return g.remove(k)
	})
}

// disownStream deletes the counters of a connection's first stream and notes that the stream is to be erased. It
// returns the stream's number, or 0 if there is none.
func (e *eraser) disownStream(ctx context.Context, id string) (number uint64, err error) {
	err = e.s.queue.do(ctx, true, func(g *group) error {
		number = 0
		found := g.c.base.listKeys(key(kindCounters, id, ""), nil, false, 1)
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

// stream deletes all keys under the number of a stream that no longer exists.
func (e *eraser) stream(ctx context.Context, number uint64) error {
	e.s.windows.forget(number)
	for _, kind := range []byte{kindSegment, kindPage, kindFilter, kindDeadList, kindDeadChunk, kindLayout} {
		if err := e.drop(ctx, numbered(kind, number)); err != nil {
			return err
		}
	}
	return e.removeNote(ctx, streamNote(number))
}

// freeBulk starts another bulk file if most of the newest is garbage, so that it, too, is deleted or compacted and
// erased records leave the disk.
func (g *group) freeBulk() {
	c := g.c
	if f := c.tail.Files[c.tail.File]; f.MostlyGarbage() {
		c.tail.File++
		g.undo = append(g.undo, func() { c.tail.File-- })
	}
	c.startJob(nil)
}

// Prune implements store.Store.
func (s *timelines) Prune(ctx context.Context, id store.RunID) error {
	s.eraser.partial.RLock()
	defer s.eraser.partial.RUnlock()
	err := s.queue.do(ctx, false, func(g *group) error {
		var r store.Run
		if ok, err := g.getJSON(key(kindRun, string(id)), &r); err != nil || !ok {
			return missing(err, "run %s", id)
		}
		head, _, err := getHead(g.get, id)
		if err != nil || r.Pruned {
			return err
		}
		if !head.Ended {
			return &store.ActiveError{RunID: id}
		}
		r.Pruned = true
		g.put(eraseNote(erasedRun, string(id)), newValue(0))
		return g.putJSON(key(kindRun, string(id)), r)
	})
	if err != nil {
		return err
	}
	return s.eraser.timeline(ctx, string(id))
}

// timeline deletes the events of a run, last one first.
func (e *eraser) timeline(ctx context.Context, id string) error {
	prefix := key(kindEvent, id, "")
	err := e.inSteps(ctx, func(r reader, after []byte, most int) [][]byte {
		return r.listKeys(prefix, after, true, most)
	}, (*group).remove)
	if err != nil {
		return err
	}
	return e.removeNote(ctx, eraseNote(erasedRun, id))
}

// drop deletes the keys with prefix.
func (e *eraser) drop(ctx context.Context, prefix []byte) error {
	return e.inSteps(ctx, func(r reader, after []byte, most int) [][]byte {
		return r.listKeys(prefix, after, false, most)
	}, (*group).remove)
}

// inSteps calls each for the keys that list finds, eraseAtOnce of them in one commit.
func (e *eraser) inSteps(ctx context.Context, list func(r reader, after []byte, most int) [][]byte,
	each func(*group, []byte) error) error {
	r, err := e.s.snapshot(ctx, nil)
	if err != nil {
		return err
	}
	none := len(list(r.reader, nil, 1)) == 0 // the usual case, which takes no commit
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
		if err := e.s.queue.await(ctx, &item{op: op, barrier: true, bytes: opBytes}); err != nil || len(keys) < eraseAtOnce {
			return err
		}
		after = keys[len(keys)-1]
	}
}

func (e *eraser) removeNote(ctx context.Context, note []byte) error {
	return e.s.queue.do(ctx, false, func(g *group) error { return g.remove(note) })
}

// resume completes the erasures that an earlier process left, removes its orphaned files, and deletes expired
// documents.
func (e *eraser) resume() {
	ctx := context.Background() // queued work ends when the store closes
	e.partial.RLock()
	err := e.finish(ctx)
	e.partial.RUnlock()
	if err == nil {
		err = e.s.sweepContentFiles(ctx)
	}
	if err == nil {
		err = (&documents{e.s}).Sweep(ctx)
	}
	if err != nil && !errors.Is(err, store.ErrClosed) && e.s.stopped() == nil {
		e.s.opts.Logger.Warn("tidy up", "err", err)
	}
}

func (e *eraser) finish(ctx context.Context) error {
	r, err := e.s.snapshot(ctx, nil)
	if err != nil {
		return err
	}
	notes := slices.Collect(r.keys([]byte{kindErase}, nil, false))
	r.close()
	for _, note := range notes {
		what, _ := firstPart(note)
		id := lastPart(note)
		switch what {
		case erasedConnection:
			err = e.connection(ctx, id)
		case erasedStream:
			err = e.stream(ctx, lastNumber(note))
		case erasedRun:
			err = e.timeline(ctx, id)
		default:
			err = store.Corrupt("key %.40q says what nobody erases", note)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
