package bulk

import (
	"encoding/binary"
	"iter"
	"slices"
)

// A Filter is a Bloom filter with blocks of one cache line: a key takes one memory access
// and 21 bits, and the rate of false positives is about 1 in 2,000.
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

// add and Has choose the block by h1, the order in which a merge adds rows, so that blocks
// are filled in sequence, and the bits by h2.
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

// A Probe is a key to look up in the filters of all runs, kept small so that a batch of
// them stays in the first-level cache.
type Probe struct {
	H1, H2 uint64
	Runs   uint64 // bit i: the filter of run i may contain the key
	At     int    // index of its candidate
}

// Ask sets bit j of the probes that the filter may contain. It first loads the blocks of
// all probes independently, so that cache misses overlap; it returns a sum so that the
// compiler keeps these loads.
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

// FilterParts returns the number of parts in which a filter of this size is stored.
func FilterParts(blocks int) int {
	return (blocks*blockBytes + filterPartMax - 1) / filterPartMax
}

// Parts yields the encoded parts of the filter.
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

// setPart decodes a part, or returns false if its length is wrong.
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
