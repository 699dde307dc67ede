package sandbox

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"iter"
	"slices"
)

// skeleton returns the module for run workers: wasm with empty function bodies, without
// custom sections except names, and with data segments joined where that has no effect.
// Loading compiled code does not need the rest, whose decoding and validation would be most
// of the time between a run's start and its first instruction (3.3 MB from the Go compiler:
// 20 ms instead of 65).
//
// An empty body is `unreachable`, which is valid for every signature. It never
// runs: the machine code is that of the real module, which the compile worker
// validated.
//
// wasm passed CheckModule; an error means that it did not.
func skeleton(wasm []byte) ([]byte, error) {
	r := moduleReader{b: wasm, end: len(wasm)}
	out := append(make([]byte, 0, len(wasm)/2), r.bytes(uint32(len(moduleHeader)))...)
	joinable := true // the section that counts segments stands before theirs
	for r.left() > 0 {
		id, raw, content := r.nextSection()
		switch {
		case r.err != nil:
		case id == sectionCustom && !isNames(content):
		case id == sectionCode:
			functions, n := readU32(content, 0)
			if n < 0 || uint64(functions) > uint64(len(content)) {
				return nil, errSkeleton
			}
			out = appendSection(out, id, emptyBodies(functions))
		case id == sectionData && joinable:
			joined, ok := joinData(content)
			if !ok {
				joined = content
			}
			out = appendSection(out, id, joined)
		default:
			joinable = joinable && id != sectionDataCount
			out = append(out, raw...)
		}
	}
	if r.err != nil {
		return nil, errSkeleton
	}
	return out, nil
}

var errSkeleton = errors.New("module was not checked")

// emptyBodies is a code section's content: each body is its size, no locals,
// unreachable, end.
func emptyBodies(functions uint32) []byte {
	return append(binary.AppendUvarint(nil, uint64(functions)), bytes.Repeat([]byte{3, 0, 0x00, 0x0b}, int(functions))...)
}

// compiled yields the parts of a checked module that are compiled: all sections but custom
// ones, such as the manifest, except names. Modules that differ only in the rest share
// code.
func compiled(wasm []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		r := moduleReader{b: wasm, end: len(wasm)}
		if !yield(r.bytes(uint32(len(moduleHeader)))) {
			return
		}
		for r.left() > 0 {
			id, raw, content := r.nextSection()
			if r.err != nil || (id != sectionCustom || isNames(content)) && !yield(raw) {
				return
			}
		}
	}
}

func compiledDigest(wasm []byte) string {
	h := sha256.New()
	for part := range compiled(wasm) {
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func isNames(content []byte) bool {
	const name = "\x04name"
	return bytes.HasPrefix(content, []byte(name))
}

// joinGap is the most zeros put between two segments to make them one.
const joinGap = 512

var zeros [joinGap]byte

// joinData rewrites a data section so that neighbouring segments are joined; the Go
// compiler makes tens of thousands of small ones. Memory is zero initially, so zeros may
// fill gaps, and without a data count section no instruction refers to a segment. It
// declines anything but active segments of memory 0 at constant addresses, and overlapping
// segments, for which the order matters.
func joinData(content []byte) ([]byte, bool) {
	r := moduleReader{b: content, end: len(content)}
	count := r.u32()
	out := make([]byte, binary.MaxVarintLen32, binary.MaxVarintLen32+len(content)) // room for their number
	run := make([]byte, 0, len(content))
	var runs []extent
	start := uint64(0)
	flush := func() {
		if len(run) > 0 {
			runs = append(runs, extent{start, start + uint64(len(run))})
			out = appendSegment(out, start, run)
		}
	}
	for range count {
		at, data, ok := segment(&r)
		if !ok || len(data) == 0 { // even of an empty one the address counts
			return nil, false
		}
		end := start + uint64(len(run))
		if len(run) == 0 || at < end || at-end > joinGap {
			flush()
			start, run, end = at, run[:0], at
		}
		run = append(append(run, zeros[:at-end]...), data...)
	}
	flush()
	if r.err != nil || r.left() > 0 || overlapping(runs) {
		return nil, false
	}
	number := binary.AppendUvarint(nil, uint64(len(runs)))
	out = out[binary.MaxVarintLen32-len(number):]
	copy(out, number)
	return out, true
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

// segment reads a segment: flags 0, i32.const at, end, bytes.
func segment(r *moduleReader) (at uint64, data []byte, ok bool) {
	if r.byte() != dataActive || r.byte() != opI32Const {
		return 0, nil, false
	}
	at = uint64(uint32(r.i32()))
	if r.byte() != opEnd {
		return 0, nil, false
	}
	data = r.bytes(r.u32())
	return at, data, r.err == nil
}

func appendSegment(out []byte, at uint64, data []byte) []byte {
	out = append(out, dataActive, opI32Const)
	out = appendSLEB(out, int64(int32(uint32(at))))
	out = append(out, opEnd)
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
