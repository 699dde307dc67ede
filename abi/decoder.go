package abi

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// A decoder reads untrusted little-endian bytes from the front. After the first error all
// reads return zero values, and end returns that error.
type decoder struct {
	b        []byte
	sentinel error // what every error wraps
	err      error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", d.sentinel, what)
	}
	d.b = nil
}

func (d *decoder) check(ok bool, what string) {
	if !ok {
		d.fail("bad " + what)
	}
}

// take returns the next n bytes, or nil if there are fewer.
func (d *decoder) take(n int) []byte {
	if len(d.b) < n {
		d.fail("too short")
		return nil
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

// number reads an unsigned number of n bytes, at most 8.
func (d *decoder) number(n int) uint64 {
	var b [8]byte
	copy(b[:], d.take(n))
	return binary.LittleEndian.Uint64(b[:])
}

func (d *decoder) u8() uint8   { return uint8(d.number(1)) }
func (d *decoder) u16() uint16 { return uint16(d.number(2)) }
func (d *decoder) u32() uint32 { return uint32(d.number(4)) }
func (d *decoder) u64() uint64 { return d.number(8) }

func (d *decoder) boolean() bool {
	v := d.u8()
	d.check(v <= 1, "flag")
	return v == 1
}

func (d *decoder) duration() time.Duration {
	v := d.u64()
	d.check(v <= math.MaxInt64, "duration")
	return time.Duration(v & math.MaxInt64)
}

// str reads a string of up to most bytes.
func (d *decoder) str(most int) string {
	n := d.u32()
	if uint64(n) > uint64(most) || uint64(n) > uint64(len(d.b)) {
		d.check(false, "string length")
		return ""
	}
	return string(d.take(int(n)))
}

// count reads the length of a list. An element takes at least 4 bytes, so a length that the
// payload cannot hold is refused before anything is allocated.
func (d *decoder) count(most int) int {
	n := d.u32()
	if uint64(n) > uint64(most) || uint64(n)*4 > uint64(len(d.b)) {
		d.check(false, "count")
		return 0
	}
	return int(n)
}

func (d *decoder) strs(most int) []string {
	n := d.count(most)
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = d.str(maxWireString)
	}
	return list
}

// end returns the first error, or one for trailing bytes.
func (d *decoder) end() error {
	if len(d.b) > 0 {
		d.fail("trailing bytes")
	}
	return d.err
}

// endOf is end with the name of what was decoded in its error.
func (d *decoder) endOf(what string) error {
	if err := d.end(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
