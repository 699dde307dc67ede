package export

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
)

// Cell makes text of a connector safe in a spreadsheet: cleaned, and with a
// leading ' where it could be a formula.
func Cell(s string) string {
	formula := s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@' || s[0] == '\t' || s[0] == '\r')
	s = abi.CleanLines(s)
	if formula || s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@') {
		return "'" + s
	}
	return s
}

// What bytes mean for a text: most are printable and in no need of anything.
const (
	quoted = 1 << iota // the cell is quoted
	unsafe             // Cell has to look at it
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

// IsPlain reports whether Cell leaves a text as it is and it is not empty; false may be
// wrong.
func IsPlain(s string) bool { return s != "" && classOf(s)&unsafe == 0 }

// classOf is the class of a text that is not empty.
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

// AppendText appends a text of a connector as a cell of CSV, made safe as Cell does.
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

// AppendCell appends a cell of CSV that holds what is safe already.
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
