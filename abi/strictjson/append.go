package strictjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendQuote appends text as a JSON string literal. It escapes only what JSON requires, in
// the shortest way, so that a text has one spelling (RFC 8785). NUL and bytes that are not
// UTF-8, which a Scanner refuses, become U+FFFD.
func AppendQuote[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if n := runeLength(text, i); n > 0 {
				i += n
				continue
			}
		}
		dst = append(dst, text[from:i]...)
		dst = appendEscape(dst, c)
		i++
		from = i
	}
	dst = append(dst, text[from:]...)
	return append(dst, '"')
}

// runeLength returns the length of the UTF-8 character at i, or 0 if there is none.
func runeLength[T string | []byte](text T, i int) int {
	var b [utf8.UTFMax]byte
	n := copy(b[:], text[i:min(i+utf8.UTFMax, len(text))])
	r, size := utf8.DecodeRune(b[:n])
	if r == utf8.RuneError && size == 1 {
		return 0
	}
	return size
}

// appendEscape appends the escape sequence of c.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	if c == 0 || c >= utf8.RuneSelf {
		return append(dst, "\uFFFD"...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendCompact appends a value that a Scanner has accepted, without white space outside of
// strings. Numbers and strings keep their spelling.
func AppendCompact(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		from := i
		for i < len(raw) && !isSpace(raw[i]) {
			if raw[i] == '"' {
				i = skipString(raw, i)
			} else {
				i++
			}
		}
		dst = append(dst, raw[from:i]...)
		i = skipSpace(raw, i)
	}
	return dst
}

// skipString returns the offset after the valid string literal at i.
func skipString(src []byte, i int) int {
	i++
	for i < len(src) {
		if i+8 <= len(src) {
			w := binary.LittleEndian.Uint64(src[i:])
			quote, slash := w^ones*'"', w^ones*'\\'
			m := ((quote-ones)&^quote | (slash-ones)&^slash) & highs
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
		}
		switch src[i] {
		case '"':
			return i + 1
		case '\\':
			i += 2
		default:
			i++
		}
	}
	return len(src)
}

// skipValue returns the offset after the valid value that begins at i.
func skipValue(src []byte, i int) int {
	depth := 0
	for i < len(src) {
		switch src[i] {
		case '"':
			i = skipString(src, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\r', '\t':
			i++
			continue
		default:
			i = skipScalar(src, i)
		}
		if depth <= 0 {
			return i
		}
	}
	return i
}

// skipScalar returns the offset after the number or literal at i.
func skipScalar(src []byte, i int) int {
	for i < len(src) {
		switch src[i] {
		case ',', ':', ']', '}', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
	return i
}

// AppendNormal appends a string literal that a Scanner has accepted, in the
// spelling of AppendQuote.
func AppendNormal(dst, raw []byte) []byte {
	if s := unquoted(raw); plainLength(s) == len(s) {
		return append(dst, raw...)
	}
	dst = append(dst, '"')
	for s := unquoted(raw); len(s) > 0; {
		n := plainLength(s)
		dst = append(dst, s[:n]...)
		if s = s[n:]; len(s) == 0 {
			break
		}
		r, n := unescape(s)
		if r < ' ' || r == '"' || r == '\\' {
			dst = appendEscape(dst, byte(r))
		} else {
			dst = utf8.AppendRune(dst, r)
		}
		s = s[n:]
	}
	return append(dst, '"')
}
