package badger

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// memBytes bounds the records of a stream that are not indexed on disk yet and so are read again after a restart.
const memBytes = 16 << 20

// A layout says where the parts of a stream's index are.
type layout struct {
	// Indexed is the version up to which index runs cover the stream; for newer ones the segments are read again.
	Indexed uint64         `json:"indexed"`
	NextRun uint64         `json:"next_run"`
	Runs    []bulk.RunInfo `json:"runs,omitempty"`
	// Doomed runs are being deleted, or were being built when the process ended.
	Doomed []bulk.RunInfo `json:"doomed,omitempty"`
	// Building is the run being written by a merge.
	Building *bulk.RunInfo `json:"building,omitempty"`
}

func (l layout) clone() layout {
	l.Runs, l.Doomed = slices.Clone(l.Runs), slices.Clone(l.Doomed)
	return l
}

func (l layout) put(g *group, number uint64) error {
	return g.putJSON(numbered(kindLayout, number), l)
}

func readLayout(get func([]byte) ([]byte, bool, error), number uint64) (layout, error) {
	var l layout
	b, ok, err := get(numbered(kindLayout, number))
	if err != nil || !ok {
		return l, err
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return l, store.Corrupt("layout of stream %d: %v", number, err)
	}
	all := slices.Concat(l.Runs, l.Doomed)
	if l.Building != nil {
		all = append(all, *l.Building)
	}
	for _, info := range all {
		if !info.Sound() {
			return l, store.Corrupt("layout of stream %d: index run %d cannot be", number, info.ID)
		}
	}
	return l, nil
}

// A stream is the committer's state of a stream in memory. It is ahead of what readers see by the groups in flight.
type stream struct {
	connection  store.ConnectionID
	name        store.Stream
	countersKey []byte // the key of counters

	counters counters
	layout   layout
	dead     deadSet
	lists    []uint64        // numbers of the dead lists on disk
	dirty    int             // about the number of chunks that differ from disk
	listed   int             // versions in the lists
	heavy    map[uint64]bool // chunks worth rewriting
	tiny     map[uint64]int  // segments per chunk written since the store was opened
	fresh    int64           // bytes of segments above layout.Indexed
	used     uint64          // last group that used the stream
	sequence sequential
	holds    bool // its records may hold files

	measured  int64        // size of mem when footprint was last set
	flushing  bool         // a flush is queued
	footprint atomic.Int64 // bytes in memory, as last measured

	rows sync.RWMutex // guards the content of mem; the committer reads without it

	// Guarded by visible: readers look up keys here.
	mem    *bulk.Table
	frozen []*bulk.Table // rows being made into a run
	runs   []*bulk.IndexRun
	shown  uint64 // newest version that readers see
}

// A streamKey identifies a stream in maps.
type streamKey struct {
	connection store.ConnectionID
	stream     store.Stream
}

// stream returns the state of a stream, which it loads or creates if necessary.
func (c *committer) stream(g *group, conn store.ConnectionID, name store.Stream) (*stream, error) {
	id := streamKey{conn, name}
	if st := c.streams[id]; st != nil {
		st.used = g.seq
		return st, nil
	}
	st := &stream{
		connection: conn, name: name, countersKey: countersKey(conn, name),
		dead: make(deadSet), heavy: make(map[uint64]bool), tiny: make(map[uint64]int), mem: bulk.NewTable(), used: g.seq,
	}
	b, ok, err := g.get(st.countersKey)
	if err != nil {
		return nil, damaged(err, name)
	}
	if ok {
		err = st.load(c.base, b)
		st.holds = len(c.base.listKeys(heldKey(conn, name, ""), nil, false, 1)) > 0
	} else {
		st.counters.number, err = nextNumber(g, key(kindNumber))
		g.undo = append(g.undo, func() { c.forget(id) })
	}
	if err != nil {
		return nil, damaged(err, name)
	}
	st.footprint.Store(st.memory())
	c.remember(id, st)
	return st, nil
}

func (c *committer) remember(id streamKey, st *stream) {
	c.streams[id] = st
	c.s.visible.change(func() {
		c.s.visible.streams[id] = st
		c.s.visible.idle.loads++
		c.s.visible.idle.drop(id)
	})
}

func (c *committer) forget(id streamKey) {
	delete(c.streams, id)
	c.s.visible.change(func() { delete(c.s.visible.streams, id) })
}

// damaged adds the name of the stream to a DamageError.
func damaged(err error, s store.Stream) error {
	var d *store.DamageError
	if errors.As(err, &d) && d.Stream == "" {
		d.Stream = s
	}
	return err
}

// load reads a stream that is not in memory: the layout, the filters, the bits of superseded versions, and the segments
// that no run covers yet.
func (st *stream) load(r reader, counters []byte) error {
	var err error
	if st.counters, err = decodeCounters(counters); err != nil {
		return err
	}
	return st.loadIndex(r, math.MaxInt64)
}

// loadIndex reads what load does for a stream whose counters are known, with filters of at most so many bytes: a run
// without its filter is looked into for each key.
func (st *stream) loadIndex(r reader, filters int64) (err error) {
	st.shown = st.counters.last
	if st.layout, err = readLayout(r.get, st.counters.number); err != nil {
		return err
	}
	if b := st.layout.Building; b != nil { // the process ended in the middle of a merge
		st.layout.Doomed, st.layout.Building = append(st.layout.Doomed, *b), nil
	}
	for _, info := range st.layout.Runs {
		run := &bulk.IndexRun{RunInfo: info}
		if n := info.FilterBytes(); n <= filters {
			filters -= n
			if run, err = r.loadRun(st.counters.number, info); err != nil {
				return err
			}
		}
		st.runs = append(st.runs, run)
	}
	if err := st.loadDead(r); err != nil {
		return err
	}
	return st.replay(r)
}

func (st *stream) loadDead(r reader) error {
	err := r.scan(numbered(kindDeadChunk, st.counters.number), nil, false, func(k, payload []byte) (bool, error) {
		c, err := decodeDeadChunk(payload)
		st.dead[lastNumber(k)] = c
		return true, err
	})
	if err != nil {
		return err
	}
	err = r.scan(numbered(kindDeadList, st.counters.number), nil, false, func(k, payload []byte) (bool, error) {
		st.lists = append(st.lists, lastNumber(k))
		return true, decodeDeadList(payload, func(v uint64) {
			st.dead.set(v)
			st.listed++
		})
	})
	for i, c := range st.dead {
		if c.heavy() {
			st.heavy[i] = true
		}
		if c.dirty {
			st.dirty++
		}
	}
	return err
}

// replay puts the rows of all versions above layout.Indexed into mem. Versions that were left out of a copy are marked
// as superseded.
func (st *stream) replay(r reader) error {
	e, next := bulk.NewHasher(), st.layout.Indexed+1
	err := r.scan(numbered(kindSegment, st.counters.number), numbered(kindSegment, st.counters.number, next), false,
		func(k, payload []byte) (bool, error) {
			st.fresh += int64(len(payload))
			for en, err := range bulk.Entries(payload) {
				if err != nil {
					return false, err
				}
				for ; next < en.Version; next++ {
					if !st.dead.has(next) {
						return false, store.Corrupt("version %d is missing", next)
					}
					if st.dead[next>>chunkShift] == gone {
						next |= chunkVersions - 1
					}
				}
				if en.Version < next {
					return false, store.Corrupt("version %d comes twice", en.Version)
				}
				next++
				st.mem.Put(e.Row(en.Change, en.Version))
			}
			return true, nil
		})
	if err == nil && next != st.counters.last+1 {
		err = store.Corrupt("%d versions after %d are missing", st.counters.last+1-next, next-1)
	}
	return err
}

// memory returns the bytes that the stream's index takes in memory.
func (st *stream) memory() int64 {
	n := st.mem.Memory()
	for _, t := range st.frozen {
		n += t.Memory()
	}
	for _, r := range st.runs {
		n += r.Filter.Memory()
	}
	for _, c := range st.dead {
		if c != gone {
			n += chunkVersions/8 + 32
		}
	}
	return n
}

// counters hold what a stream's content must add up to. Every transaction that changes the stream writes them.
type counters struct {
	number     uint64 // the stream's number in keys
	live       uint64
	tombstones uint64
	last       uint64 // newest version
	bytes      uint64 // keys and data of all versions ever stored
	updated    int64  // in microseconds since 1970
	sum        sum
}

// A sum is the sum, modulo 2^128, of the elements of all current records and tombstones. Their order does not matter.
type sum struct{ lo, hi uint64 }

func (s *sum) add(e1, e2 uint64) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, e1, 0)
	s.hi, _ = bits.Add64(s.hi, e2, carry)
}

func (s *sum) sub(e1, e2 uint64) {
	var borrow uint64
	s.lo, borrow = bits.Sub64(s.lo, e1, 0)
	s.hi, _ = bits.Sub64(s.hi, e2, borrow)
}

const countersBytes = 8 * 8

func (n counters) put(g *group, k []byte) {
	v := newValue(countersBytes)
	for _, f := range []uint64{n.number, n.live, n.tombstones, n.last, n.bytes, uint64(n.updated), n.sum.lo, n.sum.hi} {
		v = binary.LittleEndian.AppendUint64(v, f)
	}
	g.put(k, v)
}

func decodeCounters(b []byte) (counters, error) {
	if len(b) != countersBytes {
		return counters{}, store.Corrupt("counters have %d bytes", len(b))
	}
	f := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return counters{
		number: f(0), live: f(1), tombstones: f(2), last: f(3), bytes: f(4), updated: int64(f(5)), sum: sum{f(6), f(7)},
	}, nil
}

func (n counters) stats(s store.Stream) store.StreamStats {
	return store.StreamStats{
		Stream: s, Live: n.live, Tombstones: n.tombstones, LastVersion: n.last, Bytes: n.bytes,
		UpdatedAt: time.UnixMicro(n.updated).UTC(),
	}
}

func countersKey(c store.ConnectionID, s store.Stream) []byte {
	return key(kindCounters, string(c), string(s))
}

// evict keeps the memory of streams below a limit by dropping the least recently used ones. The one used last stays,
// however large it is. Filters and unindexed records are read again when they are needed.
func (c *committer) evict() {
	total := int64(0)
	for _, st := range c.streams {
		total += st.footprint.Load()
	}
	for total > c.s.opts.memory && len(c.streams) > 1 {
		var oldest *stream
		for _, st := range c.streams {
			if oldest == nil || st.used < oldest.used {
				oldest = st
			}
		}
		if oldest.used > c.base.ts || oldest.flushing {
			return // in flight
		}
		total -= oldest.footprint.Load()
		c.forget(streamKey{oldest.connection, oldest.name})
	}
}
