package encode

import (
	"cmp"
	"errors"
	"slices"
	"time"
	"unsafe"
)

// A Record builds the data of one record member by member, for data without a struct. It is
// as fast as a struct and does not allocate once its buffer has grown:
//
//	rec := run.Record("messages")
//	for _, m := range page {
//		err := rec.Reset().String("id", m.ID).Int("size", m.Size).Emit(m.ID)
//		…
//	}
//
// Names must differ: a repeated name makes Emit fail, or the host end the run. A Record is
// not safe for concurrent use.
type Record struct {
	emit   func(stream, key string, v any) error // nil if the record belongs to no run
	stream string
	b      []byte
	err    error // the first bad value, reported by Emit

	members []opening // the members of the first record, by position
	at      int       // position of the next member
	strange bool      // a member differs from the one at its position
}

// An opening is the name of a member with its punctuation, as written before the value.
// Records of a stream mostly have the same members in the same order, so the opening at a
// position can usually be reused.
type opening struct {
	name  string
	text  *literal
	start int // in the current record

	of      *projection // the projection to which granted applies
	granted bool
}

// mostMembers bounds the openings that a Record keeps.
const mostMembers = 256

var errNoStream = errors.New("guest: the record has no stream: use run.Emit or run.Record")

var errRepeated = errors.New("guest: a record has two members of one name")

// NewRecord returns an empty record. Its Emit calls emit with the stream; emit is nil for a
// record that is passed to Run.Emit.
func NewRecord(stream string, emit func(stream, key string, v any) error) *Record {
	return &Record{b: make([]byte, 0, 512), stream: stream, emit: emit}
}

// Reset empties the record for reuse and returns it.
func (r *Record) Reset() *Record {
	r.b, r.err, r.at, r.strange = r.b[:0], nil, 0, false
	return r
}

// Emit sends the record as Run.Emit does and leaves it unchanged.
func (r *Record) Emit(key string) error {
	if r.emit == nil {
		return errNoStream
	}
	return r.emit(r.stream, key, r)
}

// known returns the text before the value if the member at this position has the same name
// as in earlier records, else nil.
func (r *Record) known(name string) *literal {
	if r.at < len(r.members) {
		m := &r.members[r.at]
		if unsafe.StringData(m.name) == unsafe.StringData(name) && len(m.name) == len(name) {
			m.start = len(r.b)
			r.at++
			return m.text
		}
	}
	return nil
}

// open returns the text before the value. It keeps the opening of a new position, and
// writes the name itself if it differs from the kept one.
func (r *Record) open(name string) *literal {
	if l := r.known(name); l != nil {
		return l
	}
	i := r.at
	r.at++
	if i == len(r.members) && i < mostMembers && !r.strange {
		if !slices.ContainsFunc(r.members, func(m opening) bool { return m.name == name }) {
			l := literalOf(append(appendText([]byte{','}, name), ':'))
			r.members = append(r.members, opening{name: name, text: l, start: len(r.b)})
			return l
		}
		r.err = cmp.Or(r.err, errRepeated)
	}
	r.strange = true
	r.b = append(appendText(append(r.b, ','), name), ':')
	return nothing
}

// name appends the text before a value.
func (r *Record) name(name string) { r.b = r.open(name).append(r.b) }

// String adds a string.
func (r *Record) String(name, v string) *Record {
	l := r.known(name)
	if l == nil {
		l = r.open(name)
	}
	if l.long != nil || cap(r.b)-len(r.b) < len(v)+room {
		r.b, l = l.open(r.b, len(v))
	}
	at := l.put(end(r.b))
	if n := len(v); uint(n-8) <= 24 { // inlined putText
		w0, w1, w2, w3 := words(unsafe.Pointer(unsafe.StringData(v)), n)
		if (escapes(w0)|escapes(w1)|escapes(w2)|escapes(w3))&highs == 0 {
			*(*byte)(at) = '"'
			putWords(unsafe.Add(at, 1), n, w0, w1, w2, w3)
			*(*byte)(unsafe.Add(at, 1+n)) = '"'
			r.b = r.b[:len(r.b)+l.size+n+2]
			return r
		}
	}
	r.b = l.appendText(r.b, v)
	return r
}

// Int adds an integer.
func (r *Record) Int(name string, v int64) *Record {
	l := r.open(name)
	if l.long != nil || cap(r.b)-len(r.b) < room {
		r.b, l = l.open(r.b, 0)
	}
	r.b = r.b[:len(r.b)+l.putInt(end(r.b), v)]
	return r
}

// Float adds a number. Infinity and NaN make Emit fail.
func (r *Record) Float(name string, v float64) *Record {
	l := r.open(name)
	if l.long != nil || cap(r.b)-len(r.b) < room {
		r.b, l = l.open(r.b, 0)
	}
	if n := l.putFloat(end(r.b), v); n > 0 {
		r.b = r.b[:len(r.b)+n]
		return r
	}
	r.keep(appendFloat(l.append(r.b), v, 64))
	return r
}

// Bool adds true or false.
func (r *Record) Bool(name string, v bool) *Record {
	l := r.open(name)
	if l.long != nil || cap(r.b)-len(r.b) < room {
		r.b, l = l.open(r.b, 0)
	}
	r.b = r.b[:len(r.b)+l.putBool(end(r.b), v)]
	return r
}

// Time adds a time in RFC 3339, in UTC.
func (r *Record) Time(name string, v time.Time) *Record {
	r.name(name)
	if y := v.UTC().Year(); y < 0 || y > 9999 {
		r.keep(append(r.b, nullBytes...), errors.New("guest: RFC 3339 has no year before 0 or after 9999"))
		return r
	}
	r.b = append(v.UTC().AppendFormat(append(r.b, '"'), time.RFC3339Nano), '"')
	return r
}

// Raw adds a JSON value. Malformed JSON makes Emit fail.
func (r *Record) Raw(name string, v []byte) *Record {
	r.name(name)
	r.keep(appendRaw(r.b, v))
	return r
}

// Null adds null.
func (r *Record) Null(name string) *Record {
	r.name(name)
	r.b = append(r.b, nullBytes...)
	return r
}

// Strings adds an array of strings.
func (r *Record) Strings(name string, v []string) *Record {
	r.name(name)
	r.b = appendTexts(r.b, v)
	return r
}

// Any adds any value that Run.Emit can encode.
func (r *Record) Any(name string, v any) *Record {
	r.name(name)
	r.keep(Append(r.b, v))
	return r
}

func (r *Record) keep(b []byte, err error) {
	r.b = b
	if r.err == nil {
		r.err = err
	}
}

// MarshalJSON returns the object, so that a record can be part of another value.
func (r *Record) MarshalJSON() ([]byte, error) { return r.appendTo(nil) }

// appendTo appends the object. The members in r.b each begin with a comma.
func (r *Record) appendTo(b []byte) ([]byte, error) {
	if r.err != nil {
		return b, r.err
	}
	b = append(b, '{')
	if len(r.b) > 0 {
		b = append(b, r.b[1:]...)
	}
	return append(b, '}'), nil
}
