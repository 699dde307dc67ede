package abi

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// wireDecoder reads fields off the front of b. The first fault sticks.
type wireDecoder struct {
	b   []byte
	err error
}

func (d *wireDecoder) check(ok bool, what string) {
	if !ok && d.err == nil {
		d.err = fmt.Errorf("%w: bad %s", ErrWire, what)
	}
}

func (d *wireDecoder) take(n int) []byte {
	if d.err != nil || n > len(d.b) {
		d.check(false, "length")
		return make([]byte, min(n, 8))
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *wireDecoder) u8() uint8   { return d.take(1)[0] }
func (d *wireDecoder) u16() uint16 { return binary.LittleEndian.Uint16(d.take(2)) }
func (d *wireDecoder) u32() uint32 { return binary.LittleEndian.Uint32(d.take(4)) }
func (d *wireDecoder) u64() uint64 { return binary.LittleEndian.Uint64(d.take(8)) }

func (d *wireDecoder) boolean() bool {
	v := d.u8()
	d.check(v <= 1, "flag")
	return v == 1
}

func (d *wireDecoder) duration() time.Duration {
	v := d.u64()
	d.check(v <= math.MaxInt64, "duration")
	return time.Duration(v & math.MaxInt64)
}

// str reads a string of at most most bytes.
func (d *wireDecoder) str(most int) string {
	n := d.u32()
	if uint64(n) > uint64(most) || uint64(n) > uint64(len(d.b)) {
		d.check(false, "string length")
		return ""
	}
	return string(d.take(int(n)))
}

// count reads the number of elements of a list. Each takes at least 4 bytes,
// so that no list is allocated that the payload cannot hold.
func (d *wireDecoder) count(most int) int {
	n := d.u32()
	if uint64(n) > uint64(most) || uint64(n)*4 > uint64(len(d.b)) {
		d.check(false, "count")
		return 0
	}
	return int(n)
}

func (d *wireDecoder) strs(most int) []string {
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

// end reports the first fault; bytes left over are one.
func (d *wireDecoder) end(what string) error {
	d.check(len(d.b) == 0, "trailing bytes")
	if d.err != nil {
		return fmt.Errorf("%s: %w", what, d.err)
	}
	return nil
}
