package sandbox

import "unicode/utf8"

// A moduleReader reads bytes of b up to end. After the first error pos is at end and every
// read returns zero, so callers check err once per entry.
//
// Invariant: 0 <= pos <= end <= len(b).
type moduleReader struct {
	b   []byte
	pos int
	end int
	err *ModuleError
}

func (r *moduleReader) left() int { return r.end - r.pos }

// refuse keeps the first error and stops the reader.
func (r *moduleReader) refuse(e *ModuleError) {
	if r.err == nil {
		r.err = e
	}
	r.pos = r.end
}

func (r *moduleReader) byte() byte {
	if r.pos >= r.end {
		r.refuse(fault(RuleTruncated, r.pos, "the bytes end inside of an entry"))
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

// bytes returns the next n bytes, still part of b.
func (r *moduleReader) bytes(n uint32) []byte {
	if uint64(n) > uint64(r.left()) {
		r.refuse(fault(RuleTruncated, r.pos, "%d bytes are declared and %d remain", n, r.left()))
		return nil
	}
	s := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return s
}

// u32 reads an unsigned LEB128 of at most 5 bytes.
func (r *moduleReader) u32() uint32 {
	v, next := readU32(r.b[:r.end], r.pos)
	if next < 0 {
		r.refuse(lebFault(r.pos, next))
		return 0
	}
	r.pos = next
	return v
}

// signed skips a signed LEB128 of the given width.
func (r *moduleReader) signed(bits uint) {
	next := skipSigned(r.b[:r.end], r.pos, bits)
	if next < 0 {
		r.refuse(lebFault(r.pos, next))
		return
	}
	r.pos = next
}

// i32 reads a signed LEB128 of 32 bits.
func (r *moduleReader) i32() int32 {
	from := r.pos
	r.signed(32)
	if r.err != nil {
		return 0
	}
	v, shift := int64(0), 0
	for _, c := range r.b[from:r.pos] {
		v |= int64(c&0x7f) << shift
		shift += 7
	}
	if r.b[r.pos-1]&0x40 != 0 {
		v |= -1 << shift
	}
	return int32(v)
}

// nextSection reads a section: raw is all of it, content what follows its size.
func (r *moduleReader) nextSection() (id byte, raw, content []byte) {
	from := r.pos
	id = r.byte()
	content = r.bytes(r.u32())
	return id, r.b[from:r.pos], content
}

// count reads how many entries follow, each of at least size bytes, and
// refuses more than limit of them and more than the bytes left can hold.
func (r *moduleReader) count(rule, what string, limit uint32, size int) int {
	at := r.pos
	n := r.u32()
	switch {
	case r.err != nil:
		return 0
	case n > limit:
		r.refuse(overLimit(rule, at, "the module", uint64(n), uint64(limit), what))
		return 0
	case uint64(n)*uint64(size) > uint64(r.left()):
		r.refuse(fault(RuleCount, at, "%d %s are declared and %d bytes remain", n, what, r.left()))
		return 0
	}
	return int(n)
}

// name reads a UTF-8 name, still part of b.
func (r *moduleReader) name() []byte {
	at := r.pos
	s := r.bytes(r.u32())
	if r.err == nil && !utf8.Valid(s) {
		r.refuse(fault(RuleUTF8, at, "a name is not UTF-8"))
		return nil
	}
	return s
}

// Results of the LEB128 functions that are no position.
const (
	lebTruncated = -1
	lebTooLong   = -2
)

func lebFault(at, code int) *ModuleError {
	if code == lebTruncated {
		return fault(RuleTruncated, at, "the bytes end inside of a number")
	}
	return fault(RuleLEB, at, "a number is longer than its type allows")
}

// readU32 returns the unsigned number at b[p:] and the position after it, or a
// negative position.
func readU32(b []byte, p int) (uint32, int) {
	if p < len(b) && b[p] < 0x80 {
		return uint32(b[p]), p + 1
	}
	return readLongU32(b, p)
}

func readLongU32(b []byte, p int) (uint32, int) {
	var v uint32
	for i := range 5 {
		if p+i >= len(b) {
			return 0, lebTruncated
		}
		c := b[p+i]
		if i == 4 && c > 0x0f {
			return 0, lebTooLong
		}
		v |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, p + i + 1
		}
	}
	return 0, lebTooLong
}

// skipSigned returns the position after the signed number of the given width
// (32, 33 or 64 bits) at b[p:], or a negative position. In the last byte that
// the width allows, the bits above it must repeat the sign.
func skipSigned(b []byte, p int, bits uint) int {
	last := int((bits - 1) / 7)
	for i := range last + 1 {
		if p+i >= len(b) {
			return lebTruncated
		}
		c := b[p+i]
		if i == last {
			used := bits - uint(7*last) // value bits of this byte, the sign among them
			high := c >> (used - 1)
			if ones := byte(0x7f) >> (used - 1); high != 0 && high != ones {
				return lebTooLong
			}
		}
		if c < 0x80 {
			return p + i + 1
		}
	}
	return lebTooLong
}
