package badger

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/sluicehost/sluice/store"
)

// WithMemRows makes index runs of so many rows, so that a test of a few hundred
// records sees flushes, merges and lookups in several runs.
func WithMemRows(o Options, rows int) Options {
	o.memRows = rows
	return o
}

// Settle waits until maintenance has nothing left to do.
func (s *Store) Settle(ctx context.Context) error {
	for {
		s.jobs.Wait()
		busy := false
		err := s.queue.do(ctx, true, func(g *group) error {
			for _, st := range g.c.streams {
				g.c.startJob(st)
			}
			g.c.reap()
			busy = g.c.job || len(g.c.chores) > 0
			return nil
		})
		if err != nil || !busy {
			return err
		}
	}
}

// Runs is the number of index runs of a stream, and of its rows in them.
func (s *Store) IndexRuns(c store.ConnectionID, name store.Stream) (runs int, rows uint64) {
	s.visible.RLock()
	defer s.visible.RUnlock()
	for _, r := range s.visible.streams[streamKey{c, name}].runs {
		runs, rows = runs+1, rows+r.Rows
	}
	return runs, rows
}

// WithBulkRoll makes bulk files of that size.
func WithBulkRoll(o Options, bytes uint64) Options {
	o.bulkRoll = bytes
	return o
}

// Segments counts the segments of a stream.
func (s *Store) Segments(c store.ConnectionID, name store.Stream) (n int) {
	r, err := s.snapshot(context.Background(), nil)
	if err != nil {
		return 0
	}
	defer r.close()
	for range r.keys(numbered(kindSegment, s.visible.streams[streamKey{c, name}].counters.number), nil, false) {
		n++
	}
	return n
}

// MeasureSpace measures free space now.
func (s *Store) MeasureSpace() { s.space.measure() }

// WithStreamMemory bounds the memory of streams.
func WithStreamMemory(o Options, bytes int64) Options {
	o.memory = bytes
	return o
}

// StreamsInMemory counts them.
func (s *Store) StreamsInMemory() int {
	s.visible.RLock()
	defer s.visible.RUnlock()
	return len(s.visible.streams)
}

// WithoutSync lets the engine leave its log to the operating system, to
// see that tests notice.
func WithoutSync(o Options) Options {
	o.noSync = true
	return o
}

// ParseWitness reads the entries of a witness file: how many, and whether one is broken.
func ParseWitness(data []byte) (entries int, last uint64, err error) {
	t, err := parseWitness(data)
	return int(t.size / witnessEntry), t.last.seq, err
}

// MakeWitness makes the entries from..to of a witness file.
func MakeWitness(from, to uint64) (data []byte) {
	last := chain{seq: from}
	data = append(data, witnessLine(last, last.link)...)
	for last.seq < to {
		next := chain{seq: last.seq + 1}
		next.link[0], next.link[31] = byte(next.seq), byte(next.seq>>8)
		data = append(data, witnessLine(next, last.link)...)
		last = next
	}
	return data
}

// KeptEvents counts the keys of a timeline.
func (s *Store) KeptEvents(run store.RunID) (n int) {
	r, err := s.snapshot(context.Background(), nil)
	if err != nil {
		return -1
	}
	defer r.close()
	for _, prefix := range [][]byte{key(kindEvent, string(run), ""), {kindErase}} {
		for range r.keys(prefix, nil, false) {
			n++
		}
	}
	return n
}

// Kept counts the keys of what goes with a connection, and those of all streams
// that have no counters.
func (s *Store) Kept(c store.ConnectionID) (n int) {
	r, err := s.snapshot(context.Background(), nil)
	if err != nil {
		return -1
	}
	defer r.close()
	known := map[uint64]bool{}
	err = r.scan([]byte{kindCounters}, nil, false, func(k, payload []byte) (bool, error) {
		c, err := decodeCounters(payload)
		known[c.number] = true
		return true, err
	})
	if err != nil {
		return -1
	}
	for _, prefix := range [][]byte{
		key(kindConnection, string(c)), key(kindState, string(c), ""), key(kindGap, string(c), ""),
		key(kindCounters, string(c), ""), {kindErase},
	} {
		for range r.keys(prefix, nil, false) {
			n++
		}
	}
	for _, kind := range []byte{kindSegment, kindPage, kindFilter, kindDeadList, kindDeadChunk, kindLayout} {
		for k := range r.keys([]byte{kind}, nil, false) {
			if !known[binary.BigEndian.Uint64(k[1:])] {
				n++
			}
		}
	}
	return n
}

// WithWindowBytes bounds the sort keys in a window.
func WithWindowBytes(o Options, bytes int) Options {
	o.windowBytes = bytes
	return o
}

// ForgetWindows drops what pages in another order were served from.
func (s *Store) ForgetWindows() {
	s.windows.mu.Lock()
	defer s.windows.mu.Unlock()
	s.windows.cached = nil
}

// KeptDocuments counts the documents, expired or not, and what says when they do.
func (s *Store) KeptDocuments() (n int) {
	r, err := s.snapshot(context.Background(), nil)
	if err != nil {
		return -1
	}
	defer r.close()
	for _, kind := range []byte{kindDocument, kindDue} {
		for range r.keys([]byte{kind}, nil, false) {
			n++
		}
	}
	return n
}

// SplitDocument stores a document as earlier versions did: its value in parts
// under keys of their own.
func (s *Store) SplitDocument(kind store.Kind, id string, data []byte) error {
	return s.queue.do(context.Background(), false, func(g *group) error {
		text, err := json.Marshal(storedDocument{Revision: 1, Data: data})
		if err != nil {
			return err
		}
		k, first := documentKey(kind, id), g.seq<<16
		ref := binary.LittleEndian.AppendUint32([]byte{formChunks}, uint32(len(text)))
		g.set(k, seal(k, binary.LittleEndian.AppendUint64(ref, first)))
		n := uint64(0)
		for part := range slices.Chunk(text, chunkBytes) {
			g.put(numbered(kindChunk, first, n), append(newValue(len(part)), part...))
			n++
		}
		return nil
	})
}

// Parts counts the parts of long values.
func (s *Store) Parts() (n int) {
	r, err := s.snapshot(context.Background(), nil)
	if err != nil {
		return -1
	}
	defer r.close()
	for range r.keys([]byte{kindChunk}, nil, false) {
		n++
	}
	return n
}

// Unclean says that the process before this one did not close the store.
func (s *Store) Unclean() bool { return s.unclean }
