package files

import (
	"hash/maphash"
	"maps"
	"math/bits"

	"github.com/sluicehost/sluice/host/destination"
)

// seed makes hashes of keys unpredictable for connectors.
var seed = maphash.MakeSeed()

// A keyset holds hashes of the keys of one part: the bucket and 32 more bits of each, so about five bytes per key. It
// has false positives, at a rate of 1 in 500 million.
type keyset struct {
	shift  int      // shifts a hash to its bucket
	starts []uint32 // start of each bucket in rest, and the end of the last
	rest   []uint32
}

// newKeyset returns the set of the given hashes.
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

// has reports whether a key with that hash may be in the part.
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

// A filter rules out most keys that no part of a table has, so that few parts need to be searched. It is a Bloom filter
// with two bits per key, both in one word. Keys that are removed stay in it, which only costs time.
type filter struct {
	words []uint64
	keys  int
}

// place returns the word and the bits for the low half of a hash.
func (f *filter) place(low uint32) (word int, mask uint64) {
	x := uint64(low) * 0x9e3779b97f4a7c15                                       // spreads the bits that select the word
	return int(x >> 32 & uint64(len(f.words)-1)), 1<<(x>>26&63) | 1<<(x>>20&63) // #nosec G115 -- fits
}

func (f *filter) add(k *keyset) {
	for _, low := range k.rest {
		word, mask := f.place(low)
		f.words[word] |= mask
	}
	f.keys += len(k.rest)
}

// only returns those of the hashes that the table may have.
func (f *filter) only(hashes []uint64) (some []uint64) {
	for _, h := range hashes {
		if word, mask := f.place(uint32(h)); f.words[word]&mask == mask { // #nosec G115 -- the low half
			some = append(some, h)
		}
	}
	return some
}

// An index holds what is known of the keys of a table.
type index struct {
	sets   map[uint64]*keyset // by number of the part
	filter *filter            // of all sets; nil until needed
}

func (x *index) keys() (n int) {
	for _, set := range x.sets {
		n += len(set.rest)
	}
	return n
}

// some returns those of the hashes that one of the parts may have. All parts must be in sets.
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

// indexes holds the indexes in memory, by stream.
type indexes map[destination.StreamID]*index

// maxIndexed is the number of keys in memory above which the indexes of other streams are dropped.
const maxIndexed = 10_000_000

// of returns the index of a table, which it creates if necessary.
func (x indexes) of(id destination.StreamID) *index {
	if x[id] == nil {
		x[id] = &index{sets: map[uint64]*keyset{}}
	}
	return x[id]
}

// replace limits a stream's sets to those of parts, including fresh ones.
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
