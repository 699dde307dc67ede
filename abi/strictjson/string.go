package strictjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special sets the high bit of each byte of w that ends a plain stretch of a string: a
// quote, a backslash, a control character or non-ASCII. Only the lowest set bit is
// reliable.
func special(w uint64) uint64 {
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*0x20)&^w | w) & highs
}

// str reads the string whose opening quote is at i. It returns the offset after the closing
// quote and whether the string has no escapes.
func (s *Scanner) str(src []byte, i int) (end int, plain bool) {
	i++
	plain = true
	for {
		for i+8 <= len(src) {
			m := special(binary.LittleEndian.Uint64(src[i:]))
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(src) {
			return s.fail(FaultJSON, len(src), "unexpected end"), false
		}
		switch c := src[i]; {
		case c == '"':
			return i + 1, plain
		case c == '\\':
			plain = false
			if i = s.escape(src, i); i < 0 {
				return i, false
			}
		case c < ' ':
			return s.fail(FaultJSON, i, "control character in a string"), false
		case c < utf8.RuneSelf:
			i++
		default:
			if i = s.runes(src, i); i < 0 {
				return i, false
			}
		}
	}
}

// runes reads a stretch of non-ASCII characters.
func (s *Scanner) runes(src []byte, i int) int {
	for i < len(src) && src[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n == 1 {
			return s.fail(FaultUTF8, i, "invalid UTF-8")
		}
		i += n
	}
	return i
}

// escape reads the escape sequence at i.
func (s *Scanner) escape(src []byte, i int) int {
	if i+1 == len(src) {
		return s.fail(FaultJSON, len(src), "unexpected end")
	}
	if src[i+1] != 'u' {
		if unescaped(src[i+1]) == 0 {
			return s.fail(FaultJSON, i, "no such escape")
		}
		return i + 2
	}
	r, ok := hex4(src, i+2)
	switch {
	case !ok:
		return s.fail(FaultJSON, i, `no four digits after \u`)
	case r == 0:
		return s.misspell(i, "NUL in a string")
	case !utf16.IsSurrogate(r):
		return i + 6
	}
	if i+7 < len(src) && src[i+6] == '\\' && src[i+7] == 'u' {
		if low, ok := hex4(src, i+8); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return i + 12
		}
	}
	return s.misspell(i, "half a surrogate pair")
}

// misspell handles the six-byte escape at i, which encodes no valid character.
func (s *Scanner) misspell(i int, reason string) int {
	if !s.Lenient {
		return s.fail(FaultJSON, i, reason)
	}
	if s.Misspelt == nil {
		s.Misspelt = &SyntaxError{FaultJSON, i, reason}
	}
	return i + 6
}

// unescaped returns the character of the escape with letter c, or 0.
func unescaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	default:
		return 0
	}
}

// hex4 reads four hexadecimal digits at i.
func hex4(src []byte, i int) (rune, bool) {
	if i+4 > len(src) {
		return 0, false
	}
	var r rune
	for _, c := range src[i : i+4] {
		switch {
		case c-'0' < 10:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape decodes the first character of s, the non-empty rest of a valid string literal
// without its quotes. It returns the character and the length of its spelling in bytes.
func unescape(s []byte) (rune, int) {
	if s[0] != '\\' {
		return utf8.DecodeRune(s)
	}
	if len(s) < 2 {
		return utf8.RuneError, 1
	}
	if s[1] != 'u' {
		return rune(unescaped(s[1])), 2
	}
	r, ok := hex4(s, 2)
	if !ok {
		return utf8.RuneError, 2
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if low, ok := hex4(s, 8); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
	}
	return utf8.RuneError, 6
}

// unquoted returns a string literal without its quotes.
func unquoted(raw []byte) []byte {
	if len(raw) < 2 {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// plainLength returns the length of the prefix of s without escapes.
func plainLength(s []byte) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := binary.LittleEndian.Uint64(s[i:]) ^ ones*'\\'
		if m := (w - ones) &^ w & highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(s) && s[i] != '\\' {
		i++
	}
	return i
}

// Plain returns the text of a string literal that a Scanner has accepted, in place. ok is
// false if it has escapes.
func Plain(raw []byte) (text []byte, ok bool) {
	s := unquoted(raw)
	return s, plainLength(s) == len(s)
}

// AppendString appends the text of a string literal, quotes included, that a
// Scanner has accepted.
func AppendString(dst, raw []byte) []byte {
	s := unquoted(raw)
	for {
		n := plainLength(s)
		dst = append(dst, s[:n]...)
		if s = s[n:]; len(s) == 0 {
			return dst
		}
		r, n := unescape(s)
		dst = utf8.AppendRune(dst, r)
		s = s[n:]
	}
}

// String returns the text of a string literal that a Scanner has accepted.
func String(raw []byte) string {
	s := unquoted(raw)
	if plainLength(s) == len(s) {
		return string(s)
	}
	return string(AppendString(make([]byte, 0, len(s)), raw))
}

// EqualText reports whether a string literal that a Scanner has accepted spells text. It
// does not allocate.
func EqualText(raw []byte, text string) bool {
	s := unquoted(raw)
	if n := plainLength(s); n == len(s) {
		return string(s) == text
	}
	for len(s) > 0 {
		n := plainLength(s)
		if n > len(text) || string(s[:n]) != text[:n] {
			return false
		}
		if s, text = s[n:], text[n:]; len(s) == 0 {
			break
		}
		r, n := unescape(s)
		have, size := utf8.DecodeRuneInString(text)
		if size == 0 || have != r || have == utf8.RuneError && size == 1 {
			return false
		}
		s, text = s[n:], text[size:]
	}
	return text == ""
}
