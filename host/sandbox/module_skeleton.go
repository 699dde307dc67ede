package sandbox

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// skeleton returns the module that run workers are given: wasm with every
// function body emptied, without custom sections but the names, and with its
// data segments joined where that changes nothing. Loading compiled code needs
// the rest of a module but not these, and decoding and validating them would be
// most of the time between a run's start and its first instruction (3.3 MB from
// the Go compiler: 20 ms instead of 65).
//
// An empty body is `unreachable`, which is valid for every signature. It never
// runs: the machine code is that of the real module, which the compile worker
// validated.
//
// wasm passed CheckModule; an error means that it did not.
func skeleton(wasm []byte) ([]byte, error) {
	if len(wasm) < 8 {
		return nil, errSkeleton
	}
	out := append(make([]byte, 0, len(wasm)/2), wasm[:8]...)
	joinable := !hasSection(wasm, sectionDataCount)
	err := eachSection(wasm, func(id byte, raw, content []byte) error {
		switch {
		case id == sectionCustom && !isNames(content):
		case id == sectionCode:
			functions, _, ok := uleb(content)
			if !ok || functions > uint64(len(content)) {
				return errSkeleton
			}
			out = appendSection(out, id, emptyBodies(functions))
		case id == sectionData && joinable:
			joined, ok := joinData(content)
			if !ok {
				joined = content
			}
			out = appendSection(out, id, joined)
		default:
			out = append(out, raw...)
		}
		return nil
	})
	return out, err
}

var errSkeleton = errors.New("module was not checked")

// emptyBodies is a code section's content: each body is its size, no locals,
// unreachable, end.
func emptyBodies(functions uint64) []byte {
	return append(binary.AppendUvarint(nil, functions), bytes.Repeat([]byte{3, 0, 0x00, 0x0b}, int(functions))...)
}

// eachSection calls f for every section: raw is all of it, content what follows
// its size.
func eachSection(wasm []byte, f func(id byte, raw, content []byte) error) error {
	for rest := wasm[8:]; len(rest) > 0; {
		size, n, ok := uleb(rest[1:])
		if !ok || size > uint64(len(rest)-1-n) {
			return errSkeleton
		}
		end := 1 + n + int(size)
		if err := f(rest[0], rest[:end], rest[1+n:end]); err != nil {
			return err
		}
		rest = rest[end:]
	}
	return nil
}

func hasSection(wasm []byte, id byte) (found bool) {
	err := eachSection(wasm, func(have byte, _, _ []byte) error {
		found = found || have == id
		return nil
	})
	return found || err != nil
}

// isNames reports whether a custom section is the one that names functions:
// traps are explained with it.
func isNames(content []byte) bool {
	const name = "\x04name"
	return bytes.HasPrefix(content, []byte(name))
}

// joinGap is the most zeros put between two segments to make them one.
const joinGap = 512

var zeros [joinGap]byte

// joinData rewrites a data section so that neighbours are one segment. The Go
// compiler makes tens of thousands of small ones. Memory is zero before, so zeros
// may fill gaps; without a section that counts them, no instruction names a
// segment. It declines whatever is not a list of active segments of memory 0 at
// constant addresses, and what would write a byte twice: there the order counts.
func joinData(content []byte) ([]byte, bool) {
	count, n, ok := uleb(content)
	if !ok {
		return nil, false
	}
	content = content[n:]
	var out, run []byte
	var runs []extent
	start := uint64(0)
	flush := func() {
		if len(run) > 0 {
			runs = append(runs, extent{start, start + uint64(len(run))})
			out = appendSegment(out, start, run)
		}
	}
	for range count {
		at, data, rest, ok := segment(content)
		if !ok || len(data) == 0 { // even of an empty one the address counts
			return nil, false
		}
		content = rest
		end := start + uint64(len(run))
		if len(run) == 0 || at < end || at-end > joinGap {
			flush()
			start, run, end = at, run[:0], at
		}
		run = append(append(run, zeros[:at-end]...), data...)
	}
	flush()
	if len(content) > 0 || overlapping(runs) {
		return nil, false
	}
	return append(binary.AppendUvarint(nil, uint64(len(runs))), out...), true
}

// extent is the memory from a first byte up to an end.
type extent struct{ from, to uint64 }

func overlapping(list []extent) bool {
	slices.SortFunc(list, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(list); i++ {
		if list[i].from < list[i-1].to {
			return true
		}
	}
	return false
}

// segment splits off the first segment: flags 0, i32.const at, end, bytes.
func segment(b []byte) (at uint64, data, rest []byte, ok bool) {
	const i32Const, end = 0x41, 0x0b
	if len(b) < 2 || b[0] != 0 || b[1] != i32Const {
		return 0, nil, nil, false
	}
	b = b[2:]
	signed, n, ok := sleb32(b)
	if !ok || n >= len(b) || b[n] != end {
		return 0, nil, nil, false
	}
	b = b[n+1:]
	size, n, ok := uleb(b)
	if !ok || size > uint64(len(b)-n) {
		return 0, nil, nil, false
	}
	return uint64(uint32(signed)), b[n : n+int(size)], b[n+int(size):], true
}

func appendSegment(out []byte, at uint64, data []byte) []byte {
	out = append(out, 0, 0x41)
	out = appendSLEB(out, int64(int32(uint32(at))))
	out = append(out, 0x0b)
	return append(binary.AppendUvarint(out, uint64(len(data))), data...)
}

func appendSection(out []byte, id byte, content []byte) []byte {
	return append(binary.AppendUvarint(append(out, id), uint64(len(content))), content...)
}

func appendSLEB(b []byte, v int64) []byte {
	for ; v < -64 || v > 63; v >>= 7 {
		b = append(b, byte(v)&0x7f|0x80)
	}
	return append(b, byte(v)&0x7f)
}

// uleb reads an unsigned number of at most 32 bits and its length.
func uleb(b []byte) (v uint64, n int, ok bool) {
	number, n := readU32(b, 0)
	return uint64(number), max(n, 0), n > 0
}

// sleb32 reads a signed number of 32 bits and its length.
func sleb32(b []byte) (v int32, n int, ok bool) {
	var wide int64
	for n < len(b) && n < 5 {
		wide |= int64(b[n]&0x7f) << (7 * n)
		n++
		if b[n-1] < 0x80 {
			if b[n-1]&0x40 != 0 && n < 5 {
				wide |= -1 << (7 * n)
			}
			return int32(wide), n, true
		}
	}
	return 0, 0, false
}
