package badger

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/sluicehost/sluice/store"
)

// counters are what a stream's content must add up to (S123). They are written
// in every transaction that changes the stream.
type counters struct {
	number     uint64 // of the stream in keys
	live       uint64
	tombstones uint64
	last       uint64 // newest version
	bytes      uint64 // keys and data of all versions ever stored
	updated    int64  // µs
	sum        sum
}

// A sum is the order-free sum of the elements of all current records and
// tombstones, modulo 2^128.
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
