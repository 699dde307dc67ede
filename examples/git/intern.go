package main

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// An interner numbers lines; equal lines get the same number. It is a plain hash table
// that is reused, since Go's maps take a fifth of a whole run under wasm, where their
// hash function is slow.
type interner struct {
	seed  uint64
	slots []int32 // 1 + number of a line, or 0
	lines []internedLine
}

type internedLine struct {
	hash uint64
	text []byte
}

func newInterner() *interner {
	return &interner{seed: maphash.Bytes(maphash.MakeSeed(), nil)}
}

// reset forgets all lines and makes room for n.
func (t *interner) reset(n int) {
	size := 1 << bits.Len(uint(2*n+16))
	if size > cap(t.slots) {
		t.slots = make([]int32, size)
	}
	t.slots = t.slots[:size]
	clear(t.slots)
	t.lines = t.lines[:0]
}

// number returns the number of a line. At most as many lines may differ as reset
// made room for.
func (t *interner) number(line []byte) int32 {
	h := t.hash(line)
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		n := t.slots[i]
		if n == 0 {
			t.lines = append(t.lines, internedLine{h, line})
			t.slots[i] = int32(len(t.lines))
			return int32(len(t.lines)) - 1
		}
		if known := &t.lines[n-1]; known.hash == h && bytes.Equal(known.text, line) {
			return n - 1
		}
	}
}

func (t *interner) hash(line []byte) uint64 {
	const prime = 0x9e3779b97f4a7c15
	h := t.seed ^ uint64(len(line))
	for len(line) >= 8 {
		h = (h ^ binary.LittleEndian.Uint64(line)) * prime
		h ^= h >> 29
		line = line[8:]
	}
	for _, c := range line {
		h = (h ^ uint64(c)) * prime
	}
	return h ^ h>>32
}
