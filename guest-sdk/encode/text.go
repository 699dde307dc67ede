package encode

import (
	"math/bits"
	"slices"
	"unicode/utf8"
	"unsafe"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// This code is tuned for wasm, where a taken branch or a call costs as much as a dozen
// other instructions: text is tested and copied eight bytes at a time, the last eight
// overlapping, and numbers are written without a loop. It assumes little-endian memory,
// like that of wasm.

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// escapes has the high bit set in each byte of w that must be escaped in a JSON string or
// is not ASCII. Only the lowest set high bit is reliable, and other bits have no meaning.
func escapes(w uint64) uint64 {
	return (w ^ ones*'"' - ones) | (w ^ ones*'\\' - ones) | (w - ones*' ') | w
}

// A literal is text that is the same for every value, such as the name of a member. Up to
// headBytes of it are always copied as three words.
type literal struct {
	words [3]uint64
	size  int
	long  []byte // the text, if longer than headBytes
}

const headBytes = 24

func literalOf(text []byte) *literal {
	if len(text) > headBytes {
		return &literal{long: text}
	}
	l := &literal{size: len(text)}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&l.words)), headBytes), text)
	return l
}

var nothing = literalOf(nil)

// room is the most that a literal and a number take, or a literal, two quotes and what
// copying by words writes past the end of a text.
const room = 64

// grow ensures room for n more bytes. It is rarely called, so it is kept out of its
// callers.
//
//go:noinline
func grow(b []byte, n int) []byte { return slices.Grow(b, n) }

// open ensures room for a literal and text more bytes. It writes a long literal itself and
// returns the literal that remains to be put.
func (l *literal) open(b []byte, text int) ([]byte, *literal) {
	b = grow(b, room+len(l.long)+text)
	if l.long == nil {
		return b, l
	}
	return append(b, l.long...), nothing
}

// put writes the literal, and possibly more bytes that are to be overwritten.
func (l *literal) put(dst unsafe.Pointer) unsafe.Pointer {
	words := (*[3]uint64)(dst)
	words[0], words[1], words[2] = l.words[0], l.words[1], l.words[2]
	return unsafe.Add(dst, l.size)
}

// end returns the address of the byte after b.
func end(b []byte) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), len(b))
}

// append appends the literal.
func (l *literal) append(b []byte) []byte {
	if l.long != nil || cap(b)-len(b) < room {
		b, l = l.open(b, 0)
	}
	l.put(end(b))
	return b[:len(b)+l.size]
}

// appendText appends s as a JSON string, exactly as strictjson.AppendQuote does.
func appendText(b []byte, s string) []byte { return nothing.appendText(b, s) }

// appendText appends the literal and then s as a JSON string.
func (l *literal) appendText(b []byte, s string) []byte {
	if l.long != nil || cap(b)-len(b) < len(s)+room {
		b, l = l.open(b, len(s))
	}
	n := l.putText(end(b), s)
	if n < 0 {
		return strictjson.AppendQuote(l.append(b), s)
	}
	return b[:len(b)+n]
}

// putText writes the literal and then a string to dst, which has room. It returns the
// length, or -1 for a string that needs escapes.
func (l *literal) putText(dst unsafe.Pointer, s string) int {
	at := l.put(dst)
	*(*byte)(at) = '"'
	at = unsafe.Add(at, 1)
	src, n := unsafe.Pointer(unsafe.StringData(s)), len(s)
	var found uint64
	if uint(n-8) <= 24 {
		w0, w1, w2, w3 := words(src, n)
		found = escapes(w0) | escapes(w1) | escapes(w2) | escapes(w3)
		putWords(at, n, w0, w1, w2, w3)
	} else {
		found = putOther(at, src, n)
	}
	if found&highs != 0 && !plainUTF8(s) {
		return -1
	}
	*(*byte)(unsafe.Add(at, n)) = '"'
	return l.size + n + 2
}

// words returns a text of 8 to 32 bytes as four words, which overlap unless n is 32.
func words(src unsafe.Pointer, n int) (w0, w1, w2, w3 uint64) {
	last := n - 16
	back := last >> 63
	return *(*uint64)(src), *(*uint64)(unsafe.Add(src, 8+last&back)), *(*uint64)(unsafe.Add(src, last&^back)),
		*(*uint64)(unsafe.Add(src, n-8))
}

// putWords writes the result of words.
func putWords(dst unsafe.Pointer, n int, w0, w1, w2, w3 uint64) {
	last := n - 16
	back := last >> 63
	*(*uint64)(dst), *(*uint64)(unsafe.Add(dst, 8+last&back)) = w0, w1
	*(*uint64)(unsafe.Add(dst, last&^back)), *(*uint64)(unsafe.Add(dst, n-8)) = w2, w3
}

// putOther copies a text of less common length, and returns the escapes of all its words.
func putOther(dst, src unsafe.Pointer, n int) (found uint64) {
	switch {
	case n >= 8:
		last := n - 16
		for i := 0; i < last; i += 16 {
			a, b := *(*uint64)(unsafe.Add(src, i)), *(*uint64)(unsafe.Add(src, i+8))
			found |= escapes(a) | escapes(b)
			*(*uint64)(unsafe.Add(dst, i)) = a
			*(*uint64)(unsafe.Add(dst, i+8)) = b
		}
		a, b := *(*uint64)(unsafe.Add(src, last)), *(*uint64)(unsafe.Add(src, last+8))
		*(*uint64)(unsafe.Add(dst, last)) = a
		*(*uint64)(unsafe.Add(dst, last+8)) = b
		return found | escapes(a) | escapes(b)
	case n >= 4:
		lo, hi := *(*uint32)(src), *(*uint32)(unsafe.Add(src, n-4))
		*(*uint32)(dst) = lo
		*(*uint32)(unsafe.Add(dst, n-4)) = hi
		return escapes(uint64(lo) | uint64(hi)<<32)
	case n > 0:
		first, middle, last := *(*byte)(src), *(*byte)(unsafe.Add(src, n>>1)), *(*byte)(unsafe.Add(src, n-1))
		*(*byte)(dst) = first
		*(*byte)(unsafe.Add(dst, n>>1)) = middle
		*(*byte)(unsafe.Add(dst, n-1)) = last
		return escapes(uint64(first) | uint64(middle)<<8 | uint64(last)<<16 | 0x2020202020000000)
	}
	return 0
}

// plainUTF8 reports whether a text with non-ASCII characters is valid UTF-8 and needs no
// escapes.
func plainUTF8(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return utf8.ValidString(s)
}

func appendBool(b []byte, v bool) []byte {
	b = grow(b, room)
	return b[:len(b)+nothing.putBool(end(b), v)]
}

// true and false, as they are in memory.
const (
	wordTrue  = 't' | 'r'<<8 | 'u'<<16 | 'e'<<24
	wordFalse = 'f' | 'a'<<8 | 'l'<<16 | 's'<<24 | 'e'<<32
)

// putBool writes the literal and true or false, and returns the length.
func (l *literal) putBool(dst unsafe.Pointer, v bool) int {
	bit := uint64(*(*byte)(unsafe.Pointer(&v)))
	*(*uint64)(l.put(dst)) = wordFalse ^ (wordFalse^wordTrue)&-bit
	return l.size + 5 - int(bit)
}

// appendInt appends a number in decimal.
func appendInt(b []byte, v int64) []byte {
	b = grow(b, room)
	return b[:len(b)+nothing.putInt(end(b), v)]
}

// putInt writes the literal and a decimal number, and returns the length.
func (l *literal) putInt(dst unsafe.Pointer, v int64) int {
	at := l.put(dst)
	if uint64(v) < eightDigits {
		w := digits(uint64(v))
		zeros := bits.TrailingZeros64(w|1<<56) & 56
		*(*uint64)(at) = (w | ones*'0') >> (zeros & 63)
		return l.size + 8 - zeros>>3
	}
	if v < 0 {
		*(*byte)(at) = '-'
		return l.size + 1 + putUint(unsafe.Add(at, 1), -uint64(v))
	}
	return l.size + putUint(at, uint64(v))
}

func appendUint(b []byte, v uint64) []byte {
	b = grow(b, room)
	return b[:len(b)+putUint(end(b), v)]
}

const eightDigits = 100_000_000

// putUint writes a decimal number, and possibly bytes after it, and returns the number of
// digits.
func putUint(dst unsafe.Pointer, v uint64) int {
	n := 0
	if v >= eightDigits {
		high := v / eightDigits
		v -= high * eightDigits
		n = putUint(dst, high)
		*(*uint64)(unsafe.Add(dst, n)) = digits(v) | ones*'0'
		return n + 8
	}
	w := digits(v)
	zeros := bits.TrailingZeros64(w|1<<56) & 56
	*(*uint64)(dst) = (w | ones*'0') >> (zeros & 63)
	return 8 - zeros>>3
}

// digits returns the eight digits of v, the first in the lowest byte. It divides by
// multiplication, into two halves, four pairs and eight digits.
func digits(v uint64) uint64 {
	q := v * 109951163 >> 40 // v / 10000
	w := q | (v-q*10000)<<32
	q = w * 10486 >> 20 & 0x7f0000007f
	w = q | (w-q*100)<<16
	q = w * 103 >> 10 & 0x000f000f000f000f
	return q | (w-q*10)<<8
}
