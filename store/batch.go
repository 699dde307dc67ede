package store

import (
	"encoding/binary"
	"iter"
)

// A Batch is the records of one flush of one stream, in emission order. They are packed, so
// that building a batch copies key and data once and a driver can store the bytes
// unchanged.
//
//	change  op u8  flags u8 (1 = compound key)  key_len u16  data_len u32
//	        emitted_at i64 (µs)  key bytes  data bytes            little-endian
//
// A Batch passed to Submit belongs to the store until its receipt is done.
type Batch struct {
	Stream Stream
	count  int
	packed []byte
	held   map[int][]Held // files by index of the change; nil for a stream without files
	holds  int
}

// ChangeHeader is the length of a packed change without key and data.
const ChangeHeader = 16

// Append copies c into the batch. Keys are at most 64 KiB − 1 and data less
// than 4 GiB, which the protocol's limits guarantee.
func (b *Batch) Append(c Change) {
	var h [ChangeHeader]byte
	h[0] = byte(c.Op)
	if c.Compound {
		h[1] = 1
	}
	binary.LittleEndian.PutUint16(h[2:], uint16(len(c.Key)))
	binary.LittleEndian.PutUint32(h[4:], uint32(len(c.Data)))
	binary.LittleEndian.PutUint64(h[8:], uint64(c.EmittedAt))
	b.packed = append(b.packed, h[:]...)
	b.packed = append(b.packed, c.Key...)
	b.packed = append(b.packed, c.Data...)
	b.count++
}

// Len is the number of changes.
func (b *Batch) Len() int { return b.count }

// Size is the number of packed bytes.
func (b *Batch) Size() int { return len(b.packed) }

// Packed returns the encoded changes; the slice belongs to the batch.
func (b *Batch) Packed() []byte { return b.packed }

// Reset empties the batch for reuse.
func (b *Batch) Reset(s Stream) {
	b.Stream, b.count, b.packed, b.held, b.holds = s, 0, b.packed[:0], nil, 0
}

// Changes iterates over the batch. It yields the offset of each change in Packed; Key and
// Data alias the batch.
func (b *Batch) Changes() iter.Seq2[int, Change] {
	return func(yield func(int, Change) bool) {
		for off := 0; off < len(b.packed); {
			c, n := Unpack(b.packed[off:])
			if n == 0 || !yield(off, c) {
				return
			}
			off += n
		}
	}
}

// Unpack decodes the first packed change of p and returns its length, or 0 if p is
// truncated or not a change.
func Unpack(p []byte) (Change, int) {
	if len(p) < ChangeHeader || p[0] > byte(Delete) || p[1] > 1 {
		return Change{}, 0
	}
	k := int(binary.LittleEndian.Uint16(p[2:]))
	d := int(binary.LittleEndian.Uint32(p[4:]))
	n := ChangeHeader + k + d
	if n > len(p) {
		return Change{}, 0
	}
	return Change{
		Op: Op(p[0]), Compound: p[1] == 1,
		EmittedAt: int64(binary.LittleEndian.Uint64(p[8:])),
		Key:       p[ChangeHeader : ChangeHeader+k],
		Data:      p[ChangeHeader+k : n],
	}, n
}
