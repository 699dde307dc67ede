package badger

import (
	"encoding/binary"
	"iter"

	"github.com/sluicehost/sluice/store"
)

// A segment is one engine value: the records of one flush as the run packed
// them, or what is still needed of several. It is a list of parts:
//
//	part  sparse u8  ingested_at i64 (µs)  first_version u64  count u32
//	      run_len u16  packed_len u32  run  [versions]  packed     little-endian
//
// packed is Batch.Packed of the records that got a version. The versions of a
// fresh part follow on each other; those of a sparse part, from which
// superseded records were dropped, are listed as uvarint steps from
// first_version on.
//
// Invariant: the versions of a segment ascend, and no two segments overlap.
type part struct {
	run      string
	ingested int64
	first    uint64
	count    int
	steps    []byte // uvarints, nil in a fresh part
	packed   []byte
}

const partHeader = 1 + 8 + 8 + 4 + 2 + 4

func (p part) append(b []byte) []byte {
	sparse := byte(0)
	if p.steps != nil {
		sparse = 1
	}
	b = append(b, sparse)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.ingested))
	b = binary.LittleEndian.AppendUint64(b, p.first)
	b = binary.LittleEndian.AppendUint32(b, uint32(p.count))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(p.run)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.packed)))
	b = append(b, p.run...)
	if sparse == 1 {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p.steps)))
		b = append(b, p.steps...)
	}
	return append(b, p.packed...)
}

// decodePart reads the first part of b and returns what follows it.
func decodePart(b []byte) (p part, rest []byte, ok bool) {
	if len(b) < partHeader || b[0] > 1 {
		return p, nil, false
	}
	sparse := b[0] == 1
	p.ingested = int64(binary.LittleEndian.Uint64(b[1:]))
	p.first = binary.LittleEndian.Uint64(b[9:])
	p.count = int(binary.LittleEndian.Uint32(b[17:]))
	run := int(binary.LittleEndian.Uint16(b[21:]))
	packed := int(binary.LittleEndian.Uint32(b[23:]))
	b = b[partHeader:]
	if len(b) < run {
		return p, nil, false
	}
	p.run, b = string(b[:run]), b[run:]
	if sparse {
		if len(b) < 4 {
			return p, nil, false
		}
		n := int(binary.LittleEndian.Uint32(b))
		if b = b[4:]; len(b) < n {
			return p, nil, false
		}
		p.steps, b = b[:n:n], b[n:]
	}
	if len(b) < packed {
		return p, nil, false
	}
	p.packed = b[:packed:packed]
	return p, b[packed:], true
}

// An entry is one version of one key as a segment holds it.
type entry struct {
	store.Change
	version  uint64
	run      string
	ingested int64
	raw      []byte // the packed form of Change
}

// entries iterates over a segment's payload. A second value that is not nil
// ends the iteration.
func entries(payload []byte) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for len(payload) > 0 {
			p, rest, ok := decodePart(payload)
			if !ok {
				yield(entry{}, store.Corrupt("segment part is cut short"))
				return
			}
			if !p.each(yield) {
				return
			}
			payload = rest
		}
	}
}

func (p part) each(yield func(entry, error) bool) bool {
	version, steps, packed := p.first, p.steps, p.packed
	for i := range p.count {
		switch {
		case p.steps != nil:
			step, n := binary.Uvarint(steps)
			if n <= 0 {
				return yield(entry{}, store.Corrupt("segment part lacks versions")) && false
			}
			version += step
			steps = steps[n:]
		case i > 0:
			version++
		}
		c, n := store.Unpack(packed)
		if n == 0 {
			return yield(entry{}, store.Corrupt("segment part lacks records")) && false
		}
		if !yield(entry{c, version, p.run, p.ingested, packed[:n]}, nil) {
			return false
		}
		packed = packed[n:]
	}
	return true
}

// A repack collects entries, which come in version order, into sparse parts.
type repack struct {
	parts []part
	last  uint64
	bytes int
}

func (r *repack) add(e entry) {
	n := len(r.parts)
	if n == 0 || r.parts[n-1].run != e.run || r.parts[n-1].ingested != e.ingested {
		r.parts = append(r.parts, part{run: e.run, ingested: e.ingested, first: e.version, steps: []byte{}})
		r.last, n = e.version, n+1
		r.bytes += partHeader + len(e.run)
	}
	p := &r.parts[n-1]
	p.steps = binary.AppendUvarint(p.steps, e.version-r.last)
	p.packed = append(p.packed, e.raw...)
	p.count++
	r.last = e.version
	r.bytes += len(e.raw) + 2
}

// segment returns what was collected, and its first version.
func (r *repack) segment() (first uint64, v []byte) {
	v = make([]byte, 0, r.bytes+16*len(r.parts))
	for _, p := range r.parts {
		v = p.append(v)
	}
	return r.parts[0].first, v
}
