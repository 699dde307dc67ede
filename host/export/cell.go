package export

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
)

// Cell makes text of a connector safe for spreadsheets: it cleans it and puts a ' in front of what could be a formula.
func Cell(s string) string {
	formula := s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@' || s[0] == '\t' || s[0] == '\r')
	s = abi.CleanLines(s)
	if formula || s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@') {
		return "'" + s
	}
	return s
}

// Classes of bytes. Most bytes are printable and in neither class.
const (
	quoted = 1 << iota // the cell must be quoted
	unsafe             // the text must go through Cell
)

var bytesOf = func() (class [256]byte) {
	for c := range class {
		if c < 0x20 || c >= 0x7f {
			class[c] = unsafe
		}
	}
	class['"'], class[','] = quoted, quoted
	return class
}()

// IsPlain reports whether s is known to be a nonempty text that Cell does not change. It may return false for such a
// text.
func IsPlain(s string) bool { return s != "" && classOf(s)&unsafe == 0 }

// classOf returns the class of a nonempty text.
func classOf[T string | []byte](s T) (class byte) {
	for i := range len(s) {
		class |= bytesOf[s[i]]
	}
	switch s[0] {
	case '=', '+', '-', '@':
		class |= unsafe
	case ' ', '\\':
		class |= quoted
	}
	return class
}

// AppendText appends a connector's text as a CSV cell, made safe as by Cell.
func AppendText[T string | []byte](b []byte, s T) []byte {
	if len(s) == 0 {
		return b
	}
	switch classOf(s) {
	case 0:
		return append(b, s...)
	case quoted:
		return appendQuoted(b, s)
	}
	return AppendCell(b, Cell(string(s)))
}

// AppendCell appends a CSV cell whose text is already safe.
func AppendCell(b []byte, s string) []byte {
	first, _ := utf8.DecodeRuneInString(s)
	if strings.ContainsAny(s, "\",\r\n") || unicode.IsSpace(first) || first == '\\' {
		return appendQuoted(b, s)
	}
	return append(b, s...)
}

func appendQuoted[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		if s[i] == '"' {
			b = append(append(b, s[from:i]...), '"')
			from = i
		}
	}
	return append(append(b, s[from:]...), '"')
}
