package bulk

import (
	"encoding/binary"
	"iter"

	"github.com/sluicehost/sluice/store"
)

// A segment is one extent: the records of one flush as the run packed them, or what remains
// of several after compaction. It is a list of parts:
//
//	part  sparse u8  ingested_at i64 (µs)  first_version u64  count u32
//	      run_len u16  packed_len u32  run  [versions]  packed     little-endian
//
// packed is Batch.Packed of the records that got a version. The versions of a fresh part
// are consecutive; those of a sparse part, from which superseded records were removed, are
// listed as uvarint increments from first_version on.
//
// Invariant: the versions of a segment ascend, and no two segments overlap.
type Part struct {
	Run      string
	Ingested int64
	First    uint64
	Count    int
	steps    []byte // uvarints, nil in a fresh part
	Packed   []byte
}

const PartHeader = 1 + 8 + 8 + 4 + 2 + 4

func (p Part) Append(b []byte) []byte {
	sparse := byte(0)
	if p.steps != nil {
		sparse = 1
	}
	b = append(b, sparse)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Ingested))
	b = binary.LittleEndian.AppendUint64(b, p.First)
	b = binary.LittleEndian.AppendUint32(b, uint32(p.Count))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(p.Run)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.Packed)))
	b = append(b, p.Run...)
	if sparse == 1 {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p.steps)))
		b = append(b, p.steps...)
	}
	return append(b, p.Packed...)
}

// decodePart decodes the first part of b and returns the bytes after it.
func decodePart(b []byte) (p Part, rest []byte, ok bool) {
	if len(b) < PartHeader || b[0] > 1 {
		return p, nil, false
	}
	sparse := b[0] == 1
	p.Ingested = int64(binary.LittleEndian.Uint64(b[1:]))
	p.First = binary.LittleEndian.Uint64(b[9:])
	p.Count = int(binary.LittleEndian.Uint32(b[17:]))
	run := int(binary.LittleEndian.Uint16(b[21:]))
	packed := int(binary.LittleEndian.Uint32(b[23:]))
	b = b[PartHeader:]
	if len(b) < run {
		return p, nil, false
	}
	p.Run, b = string(b[:run]), b[run:]
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
	p.Packed = b[:packed:packed]
	return p, b[packed:], true
}

// An Entry is one version of one key in a segment.
type Entry struct {
	store.Change
	Version  uint64
	Run      string
	Ingested int64
	Raw      []byte // the packed form of Change
}

// Entries iterates over a segment's payload. A non-nil error ends the iteration.
func Entries(payload []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for len(payload) > 0 {
			p, rest, ok := decodePart(payload)
			if !ok {
				yield(Entry{}, store.Corrupt("segment part is cut short"))
				return
			}
			if !p.each(yield) {
				return
			}
			payload = rest
		}
	}
}

func (p Part) each(yield func(Entry, error) bool) bool {
	version, steps, packed := p.First, p.steps, p.Packed
	for i := range p.Count {
		switch {
		case p.steps != nil:
			step, n := binary.Uvarint(steps)
			if n <= 0 {
				return yield(Entry{}, store.Corrupt("segment part lacks versions")) && false
			}
			version += step
			steps = steps[n:]
		case i > 0:
			version++
		}
		c, n := store.Unpack(packed)
		if n == 0 {
			return yield(Entry{}, store.Corrupt("segment part lacks records")) && false
		}
		if !yield(Entry{c, version, p.Run, p.Ingested, packed[:n]}, nil) {
			return false
		}
		packed = packed[n:]
	}
	return true
}

// A Packer collects entries, in version order, into sparse parts.
type Packer struct {
	Parts []Part
	last  uint64
	Bytes int
}

func (r *Packer) Add(e Entry) {
	n := len(r.Parts)
	if n == 0 || r.Parts[n-1].Run != e.Run || r.Parts[n-1].Ingested != e.Ingested {
		r.Parts = append(r.Parts, Part{Run: e.Run, Ingested: e.Ingested, First: e.Version, steps: []byte{}})
		r.last, n = e.Version, n+1
		r.Bytes += PartHeader + len(e.Run)
	}
	p := &r.Parts[n-1]
	p.steps = binary.AppendUvarint(p.steps, e.Version-r.last)
	p.Packed = append(p.Packed, e.Raw...)
	p.Count++
	r.last = e.Version
	r.Bytes += len(e.Raw) + 2
}

// Segment returns the segment and its first version.
func (r *Packer) Segment() (first uint64, v []byte) {
	v = make([]byte, 0, r.Bytes+16*len(r.Parts))
	for _, p := range r.Parts {
		v = p.Append(v)
	}
	return r.Parts[0].First, v
}
