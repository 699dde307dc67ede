package postgres

import (
	"encoding/binary"
	"io"
	"math"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/destination"
)

// rows encodes rows of a batch in the binary format of COPY:
//
//	"PGCOPY\n\xff\r\n\0" flags:4 extension:4   { fields:2 { length:4 bytes } }   -1:2
//
// Numbers are big-endian; NULL is the length -1. Only one piece at a time is in memory.
type rows struct {
	shape   *destination.Shape
	batch   []destination.Row
	which   rowSet
	history bool // the fourth column is _valid_from, not _deleted_at
	piece   []byte
	read    int  // bytes of piece already read
	begun   bool // the header is written
	ended   bool // the trailer is written
}

func (w *writer) rows(which rowSet, history bool) *rows {
	return &rows{shape: w.to.Shape, batch: w.batch, which: which, history: history}
}

// pieceBytes is the approximate size of a piece. A piece contains whole rows.
const pieceBytes = 64 << 10

// Read implements io.Reader.
func (r *rows) Read(p []byte) (n int, err error) {
	for r.read == len(r.piece) {
		if r.ended {
			return 0, io.EOF
		}
		r.next()
	}
	n = copy(p, r.piece[r.read:])
	r.read += n
	return n, nil
}

// next encodes the next piece.
func (r *rows) next() {
	if cap(r.piece) > 8*pieceBytes { // do not keep the buffer of a long row
		r.piece = nil
	}
	b := r.piece[:0]
	if !r.begun {
		b = append(b, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
		r.begun = true
	}
	for len(r.batch) > 0 && len(b) < pieceBytes {
		if row := &r.batch[0]; r.which == all || row.Deleted == (r.which == gone) {
			b = r.row(b, row)
		}
		r.batch = r.batch[1:]
	}
	if len(r.batch) == 0 {
		b = append(b, 0xff, 0xff)
		r.ended = true
	}
	r.piece, r.read = b, 0
}

// row appends one row.
func (r *rows) row(b []byte, row *destination.Row) []byte {
	columns := r.shape.Columns
	b = binary.BigEndian.AppendUint16(b, uint16(5+len(columns))) // #nosec G115 -- at most destination.MaxColumns
	b = text(b, row.Key)
	b = integer(b, int64(row.Version)) // #nosec G115 -- versions count changes
	b = instant(b, row.At)
	if row.Deleted || r.history {
		b = instant(b, row.At)
	} else {
		b = null(b)
	}
	fit, rest := len(columns), row.Rest
	if len(columns) > alwaysFit {
		fit, rest = fitting(columns, row)
	}
	for i, c := range columns {
		if i >= fit || i >= len(row.Values) {
			b = null(b)
			continue
		}
		b = value(b, row.Value(i, c))
	}
	if rest == "" {
		return null(b)
	}
	return jsonb(b, rest)
}

func value(b []byte, v destination.Value) []byte {
	switch v.Type {
	case "":
		return null(b)
	case destination.Boolean:
		return append(b, 0, 0, 0, 1, byte(v.Integer))
	case destination.Integer:
		return integer(b, v.Integer)
	case destination.Number:
		return integer(b, int64(math.Float64bits(v.Number))) // #nosec G115 -- bits
	case destination.Time:
		return integer(b, v.Integer-epoch)
	case destination.JSON:
		return jsonb(b, v.Text)
	}
	return text(b, v.Text)
}

func null(b []byte) []byte { return append(b, 0xff, 0xff, 0xff, 0xff) }

func integer(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 8), uint64(n)) // #nosec G115 -- bits
}

// epoch is PostgreSQL's epoch, in microseconds since 1970.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func instant(b []byte, t time.Time) []byte { return integer(b, t.UnixMicro()-epoch) }

func text(b []byte, s string) []byte {
	s = withoutNUL(s)
	b = binary.BigEndian.AppendUint32(b, uint32(len(s))) // #nosec G115 -- a part of a record
	return append(b, s...)
}

// jsonb appends a jsonb value, which begins with the version of its format.
func jsonb(b []byte, s string) []byte {
	s = storable(s)
	b = binary.BigEndian.AppendUint32(b, uint32(1+len(s))) // #nosec G115 -- a part of a record
	return append(append(b, 1), s...)
}

func withoutNUL(s string) string {
	if strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}

// Maximum digits and exponent of a number in jsonb. The server could hold somewhat more, but would print each such
// number with up to 131,072 digits.
const (
	maxDigits   = 1000
	maxExponent = 1000
)

// storable returns JSON that jsonb can hold: NUL is replaced, and numbers out of range become strings. Most JSON is
// returned unchanged.
func storable(s string) string {
	var out []byte // nil if nothing was replaced yet
	kept := 0      // s up to here is in out
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] != '\\' {
					continue
				}
				i++
				if strings.HasPrefix(s[i:], "u0000") {
					out = append(append(out, s[kept:i]...), "ufffd"...)
					kept = i + len("u0000")
				}
			}
			i++
		case c == '-' || c >= '0' && c <= '9':
			from := i
			for i < len(s) && (s[i] >= '0' && s[i] <= '9' || strings.IndexByte("+-.eE", s[i]) >= 0) {
				i++
			}
			if immense(s[from:i]) {
				out = append(append(append(append(out, s[kept:from]...), '"'), s[from:i]...), '"')
				kept = i
			}
		default:
			i++
		}
	}
	if out == nil {
		return s
	}
	return string(append(out, s[kept:]...))
}

// immense reports whether a number exceeds the limits for jsonb.
func immense(number string) bool {
	digits, exponent, has := number, "", false
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		digits, exponent, has = number[:i], strings.TrimLeft(number[i+1:], "+-0"), true
	}
	if len(digits) > maxDigits || !has {
		return len(digits) > maxDigits
	}
	n := 0
	for _, c := range exponent {
		if n = n*10 + int(c-'0'); n > maxExponent {
			return true
		}
	}
	return false
}

// Bytes that a row may take of its page, which has 8,160 of 8,192 for rows. A value takes at most inline bytes; longer
// ones are stored elsewhere.
const (
	rowBytes  = 8000
	inline    = 24
	alwaysFit = (rowBytes - 300) / inline
)

// fitting returns how many columns of a row fit into its page, and the value of _rest including the other ones.
func fitting(columns []destination.Column, row *destination.Row) (fit int, rest string) {
	size := 300 + len(columns)/8 // header, own columns and null bitmap
	for i, c := range columns[:min(len(columns), len(row.Values))] {
		switch v := row.Value(i, c); v.Type {
		case "":
		case destination.Boolean:
			size++
		case destination.Text:
			size += min(1+len(v.Text), inline)
		case destination.JSON:
			size += inline
		default:
			size = (size+7)&^7 + 8
		}
		if size > rowBytes {
			return i, leftOver(columns, row, i)
		}
	}
	return len(columns), row.Rest
}

// leftOver returns the object for _rest: what the row's rest already has, and the values from column i on. A field that
// is in the rest is complete there and not repeated.
func leftOver(columns []destination.Column, row *destination.Row, i int) string {
	var out []byte
	there := map[string]bool{}
	if row.Rest == "" {
		out = append(out, '{')
	} else {
		out = append(out, row.Rest[:len(row.Rest)-1]...)
		for field := range strictjson.ValueOf([]byte(row.Rest)).Members() {
			there[field] = true
		}
	}
	fields := map[string][]byte{}
	var order []string
	for ; i < len(columns) && i < len(row.Values); i++ {
		c, v := columns[i], row.Values[i]
		if v.Type == "" || there[c.Field] {
			continue
		}
		spelled := []byte(v.Text)
		if v.Type == destination.Text || v.Type == destination.Time {
			spelled = strictjson.AppendQuote(nil, v.Text)
		}
		if _, known := fields[c.Field]; !known {
			order = append(order, c.Field)
		}
		if c.Inner == "" {
			fields[c.Field] = spelled
			continue
		}
		object := append(fields[c.Field], ',')
		object = append(append(strictjson.AppendQuote(object, c.Inner), ':'), spelled...)
		fields[c.Field] = object
	}
	for _, f := range order {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(strictjson.AppendQuote(out, f), ':')
		if v := fields[f]; v[0] == ',' {
			out = append(append(append(out, '{'), v[1:]...), '}')
		} else {
			out = append(out, v...)
		}
	}
	return string(append(out, '}'))
}
