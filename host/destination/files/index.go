package files

import (
	"cmp"
	"hash/maphash"
	"maps"
	"math/bits"

	"github.com/sluicehost/sluice/host/destination"
)

// seed makes hashes of keys that no connector foresees.
var seed = maphash.MakeSeed()

// A keyset holds hashes of the keys of one part: of each its bucket and 32 bits more, so
// about five bytes a key. It may say that it has a key that it has not, once in
// 500 million times.
type keyset struct {
	shift  int      // of a hash, to its bucket
	starts []uint32 // of each bucket in rest, and the end of the last
	rest   []uint32
}

// newKeyset makes the set of hashes.
func newKeyset(hashes []uint64) *keyset {
	width := max(1, bits.Len(uint(len(hashes)/8)))
	k := &keyset{shift: 64 - width, starts: make([]uint32, 1<<width+1), rest: make([]uint32, len(hashes))}
	for _, h := range hashes {
		k.starts[h>>k.shift+1]++
	}
	for i := 1; i < len(k.starts); i++ {
		k.starts[i] += k.starts[i-1]
	}
	at := append([]uint32(nil), k.starts...)
	for _, h := range hashes {
		b := h >> k.shift
		k.rest[at[b]] = uint32(h) // #nosec G115 -- the low half
		at[b]++
	}
	return k
}

// has reports whether a key of that hash may be in the part.
func (k *keyset) has(h uint64) bool {
	b := h >> k.shift
	for _, r := range k.rest[k.starts[b]:k.starts[b+1]] {
		if r == uint32(h) { // #nosec G115 -- the low half
			return true
		}
	}
	return false
}

// hasAny reports whether one of the hashes may be in the part.
func (k *keyset) hasAny(hashes []uint64) bool {
	for _, h := range hashes {
		if k.has(h) {
			return true
		}
	}
	return false
}

// indexes are the sets of keys that are in memory, by stream and number of part.
type indexes map[destination.StreamID]map[uint64]*keyset

// maxIndexed is how many keys are in memory before those of other streams are forgotten.
const maxIndexed = 10_000_000

func (x indexes) add(id destination.StreamID, number uint64, set *keyset) {
	if x[id] == nil {
		x[id] = map[uint64]*keyset{}
	}
	x[id][number] = set
}

// replace keeps of a stream's sets those of parts, and adds fresh ones.
func (x indexes) replace(id destination.StreamID, parts []part, fresh map[uint64]*keyset) {
	was := x[id]
	delete(x, id)
	for _, p := range parts {
		if set := cmp.Or(fresh[p.Number], was[p.Number]); set != nil {
			x.add(id, p.Number, set)
		}
	}
	keys := 0
	for _, sets := range x {
		for _, set := range sets {
			keys += len(set.rest)
		}
	}
	if keys > maxIndexed {
		maps.DeleteFunc(x, func(other destination.StreamID, _ map[uint64]*keyset) bool { return other != id })
	}
}
