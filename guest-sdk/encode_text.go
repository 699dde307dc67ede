package guest

import (
	"slices"
	"unicode/utf8"
	"unsafe"

	"github.com/sluicehost/sluice/abi"
)

// What follows is written for wasm, where a taken branch or a call costs as much
// as a dozen other instructions: text is looked at and copied eight bytes at a
// time, the last of them overlapping, and numbers are written without a loop
// where they are small.

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// escapes marks the bytes of w that cannot stand for themselves in a JSON
// string and, among what it marks, bytes that are not ASCII.
func escapes(w uint64) uint64 {
	quote, slash := w^ones*'"', w^ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w | w) & highs
}

// A literal is text that is the same for every value, such as the name of a
// member. It is padded to whole words, so that it can be copied by them.
type literal struct {
	text []byte // with its padding
	size int
}

func literalOf(text []byte) literal {
	return literal{append(text, make([]byte, 8-len(text)%8)...), len(text)}
}

var nothing = literalOf(nil)

// append appends the text, and writes its padding behind it.
func (l *literal) append(b []byte) []byte {
	at := len(b)
	if cap(b)-at < len(l.text) {
		b = slices.Grow(b, len(l.text))
	}
	l.copy(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at))
	return b[:at+l.size]
}

// copy writes the text and its padding to dst.
func (l *literal) copy(dst unsafe.Pointer) {
	src := unsafe.Pointer(unsafe.SliceData(l.text))
	*(*uint64)(dst) = *(*uint64)(src)
	for i := 8; i < len(l.text); i += 8 {
		*(*uint64)(unsafe.Add(dst, i)) = *(*uint64)(unsafe.Add(src, i))
	}
}

// appendText appends a text as a JSON string, exactly as abi.AppendQuote.
func appendText(b []byte, s string) []byte { return nothing.appendText(b, s) }

// appendText appends the literal and then a text.
func (l *literal) appendText(b []byte, s string) []byte {
	n, at := len(s), len(b)+l.size
	if cap(b)-len(b) < len(l.text)+n+10 {
		b = slices.Grow(b, len(l.text)+n+10)
	}
	src := unsafe.Pointer(unsafe.StringData(s))
	dst := unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), len(b))
	l.copy(dst)
	dst = unsafe.Add(dst, l.size)
	*(*byte)(dst) = '"'
	dst = unsafe.Add(dst, 1)
	var found uint64
	switch {
	case n >= 8:
		last := n - 8
		for i := 0; i < last; i += 8 {
			w := *(*uint64)(unsafe.Add(src, i))
			found |= escapes(w)
			*(*uint64)(unsafe.Add(dst, i)) = w
		}
		w := *(*uint64)(unsafe.Add(src, last))
		found |= escapes(w)
		*(*uint64)(unsafe.Add(dst, last)) = w
	case n >= 4:
		lo, hi := *(*uint32)(src), *(*uint32)(unsafe.Add(src, n-4))
		found = escapes(uint64(lo) | uint64(hi)<<32)
		*(*uint32)(dst) = lo
		*(*uint32)(unsafe.Add(dst, n-4)) = hi
	case n > 0:
		first, middle, last := s[0], s[n>>1], s[n-1]
		found = escapes(uint64(first) | uint64(middle)<<8 | uint64(last)<<16 | 0x2020202020000000)
		*(*byte)(dst) = first
		*(*byte)(unsafe.Add(dst, n>>1)) = middle
		*(*byte)(unsafe.Add(dst, n-1)) = last
	}
	if found != 0 && !plainUTF8(s) {
		return abi.AppendQuote(b[:at], s)
	}
	*(*byte)(unsafe.Add(dst, n)) = '"'
	return b[:at+n+2]
}

// plainUTF8 reports whether a text that has something else than plain ASCII is
// UTF-8 with nothing to escape.
func plainUTF8(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return utf8.ValidString(s)
}

var (
	wordTrue  = literalOf([]byte("true"))
	wordFalse = literalOf([]byte("false"))
)

func appendBool(b []byte, v bool) []byte {
	if v {
		return wordTrue.append(b)
	}
	return wordFalse.append(b)
}

const digitPairs = "0001020304050607080910111213141516171819" +
	"2021222324252627282930313233343536373839" +
	"4041424344454647484950515253545556575859" +
	"6061626364656667686970717273747576777879" +
	"8081828384858687888990919293949596979899"

// appendInt appends a number in decimal.
func appendInt(b []byte, v int64) []byte {
	if v < 0 {
		return appendUint(append(b, '-'), -uint64(v))
	}
	return appendUint(b, uint64(v))
}

func appendUint(b []byte, v uint64) []byte {
	if v < 10 {
		return append(b, '0'+byte(v))
	}
	if v < 100 {
		return append(b, digitPairs[v*2], digitPairs[v*2+1])
	}
	var buf [20]byte
	i := len(buf)
	for v > 1<<32-1 {
		q := v / 100
		i -= 2
		pair := (v - q*100) * 2
		buf[i], buf[i+1] = digitPairs[pair], digitPairs[pair+1]
		v = q
	}
	for v >= 100 {
		q := v * 0x51EB851F >> 37 // v / 100 for 32 bits
		i -= 2
		pair := (v - q*100) * 2
		buf[i], buf[i+1] = digitPairs[pair], digitPairs[pair+1]
		v = q
	}
	if v >= 10 {
		i -= 2
		buf[i], buf[i+1] = digitPairs[v*2], digitPairs[v*2+1]
	} else {
		i--
		buf[i] = '0' + byte(v)
	}
	return append(b, buf[i:]...)
}
