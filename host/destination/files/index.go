package files

import (
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

// A filter says of most keys that no part of a table has them, so that parts are asked for
// few: a Bloom filter of two bits a key, both in one word. Keys that go stay in it, which
// costs time only.
type filter struct {
	words []uint64
	keys  int
}

// place is the word of a hash's low half in a filter, and its bits there.
func (f *filter) place(low uint32) (word int, mask uint64) {
	x := uint64(low) * 0x9e3779b97f4a7c15                                       // spreads what the number of words cuts off
	return int(x >> 32 & uint64(len(f.words)-1)), 1<<(x>>26&63) | 1<<(x>>20&63) // #nosec G115 -- fits
}

func (f *filter) add(k *keyset) {
	for _, low := range k.rest {
		word, mask := f.place(low)
		f.words[word] |= mask
	}
	f.keys += len(k.rest)
}

// only are those of the hashes that the table may have.
func (f *filter) only(hashes []uint64) (some []uint64) {
	for _, h := range hashes {
		if word, mask := f.place(uint32(h)); f.words[word]&mask == mask { // #nosec G115 -- the low half
			some = append(some, h)
		}
	}
	return some
}

// An index is what is known of the keys of a table.
type index struct {
	sets   map[uint64]*keyset // by number of the part
	filter *filter            // of all sets; nil before it is needed
}

func (x *index) keys() (n int) {
	for _, set := range x.sets {
		n += len(set.rest)
	}
	return n
}

// some are those of the hashes that one of the parts may have, all of which are in sets.
func (x *index) some(hashes []uint64) []uint64 {
	if x.filter == nil || x.filter.keys > 4*len(x.filter.words) { // 16 bits a key
		n := x.keys()
		x.filter = &filter{words: make([]uint64, 1<<bits.Len(uint(n/4)))} // #nosec G115 -- a count
		for _, set := range x.sets {
			x.filter.add(set)
		}
	}
	return x.filter.only(hashes)
}

// indexes are what is in memory, by stream.
type indexes map[destination.StreamID]*index

// maxIndexed is how many keys are in memory before those of other streams are forgotten.
const maxIndexed = 10_000_000

// of is the index of a table.
func (x indexes) of(id destination.StreamID) *index {
	if x[id] == nil {
		x[id] = &index{sets: map[uint64]*keyset{}}
	}
	return x[id]
}

// replace keeps of a stream's sets those of parts, and adds fresh ones.
func (x indexes) replace(id destination.StreamID, parts []part, fresh map[uint64]*keyset) {
	of := x.of(id)
	was := of.sets
	of.sets = map[uint64]*keyset{}
	for _, p := range parts {
		set := was[p.Number]
		if added := fresh[p.Number]; added != nil {
			if set = added; of.filter != nil {
				of.filter.add(set)
			}
		}
		if set != nil {
			of.sets[p.Number] = set
		}
	}
	keys := 0
	for _, of := range x {
		keys += of.keys()
	}
	if keys > maxIndexed {
		maps.DeleteFunc(x, func(other destination.StreamID, _ *index) bool { return other != id })
	}
}
