package bulk

import (
	"encoding/binary"
	"iter"
	"slices"
)

// A Filter is a Bloom filter in blocks of a cache line: a key costs one memory
// access and 21 bits, and is taken for present when it is not about once in
// 2,000.
type Filter struct {
	blocks []block
}

type block [8]uint64

const (
	blockBytes    = 64
	keysPerBlock  = 24
	filterProbes  = 7
	filterPartMax = 256 << 10 // bytes of a filter under one key
)

func newFilter(keys uint64) Filter {
	return Filter{blocks: make([]block, keys/keysPerBlock+1)}
}

// add and Has take the block from h1, in whose order a merge adds its rows, so
// that it fills block after block, and the bits in it from h2.
func (f Filter) add(h1, h2 uint64) {
	b := &f.blocks[f.block(h1)]
	for range filterProbes {
		b[h2>>6&7] |= 1 << (h2 & 63)
		h2 >>= 9
	}
}

func (f Filter) Has(h1, h2 uint64) bool {
	b := &f.blocks[f.block(h1)]
	for range filterProbes {
		if b[h2>>6&7]&(1<<(h2&63)) == 0 {
			return false
		}
		h2 >>= 9
	}
	return true
}

// A Probe is a key on its way through the filters of the runs, no larger than
// it must be, so that a batch of them stays in the first cache.
type Probe struct {
	H1, H2 uint64
	Runs   uint64 // bit i: the filter of run i did not rule the key out
	At     int    // its candidate
}

// Ask sets bit j of the probes that the filter does not rule out. It loads the
// blocks of all probes first, one independent of the other, so that the misses
// of the cache overlap; the sum it returns is what keeps the loads in place.
func (f Filter) Ask(probes []Probe, j int) (touched uint64) {
	for i := range probes {
		touched += f.blocks[f.block(probes[i].H1)][0]
	}
	for i := range probes {
		if p := &probes[i]; f.Has(p.H1, p.H2) {
			p.Runs |= 1 << j
		}
	}
	return touched
}

func (f Filter) block(h1 uint64) uint64 {
	return (h1 >> 32) * uint64(len(f.blocks)) >> 32
}

func (f Filter) Memory() int64 { return int64(len(f.blocks)) * blockBytes }

// FilterParts is how many keys a filter of so many blocks takes on disk.
func FilterParts(blocks int) int {
	return (blocks*blockBytes + filterPartMax - 1) / filterPartMax
}

// Parts encodes the filter.
func (f Filter) Parts() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		const per = filterPartMax / blockBytes
		n := 0
		for blocks := range slices.Chunk(f.blocks, per) {
			v := make([]byte, 0, len(blocks)*blockBytes)
			for _, b := range blocks {
				for _, w := range b {
					v = binary.LittleEndian.AppendUint64(v, w)
				}
			}
			if !yield(n, v) {
				return
			}
			n++
		}
	}
}

// setPart decodes one part; false when it does not fit.
func (f Filter) setPart(i int, payload []byte) bool {
	per := filterPartMax / blockBytes
	blocks := f.blocks[i*per : min((i+1)*per, len(f.blocks))]
	if len(payload) != len(blocks)*blockBytes {
		return false
	}
	for j := range blocks {
		for k := range blocks[j] {
			blocks[j][k] = binary.LittleEndian.Uint64(payload[j*blockBytes+k*8:])
		}
	}
	return true
}
