package encode

import (
	"reflect"
	"strings"
	"unsafe"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// A projection removes members that a stream's entry in the scope does not grant, so that a
// connector may emit whole records. START lists every field that a record needs, so nothing
// else passes. Members of structs and records are left out while encoding; raw JSON and the
// output of marshalers is parsed again.
type projection struct {
	granted map[string]bool
	seen    []seenName // members of the last record, by position, which the next one mostly shares
	scan    strictjson.Scanner
	scratch []byte
}

// A seenName is the name of a member, and whether it is granted.
type seenName struct {
	name    string
	granted bool
}

// newProjection returns nil if all fields are granted.
func newProjection(fields []string) *projection {
	if fields == nil {
		return nil
	}
	p := &projection{granted: make(map[string]bool, len(fields))}
	for _, f := range fields {
		p.granted[f] = true
	}
	return p
}

// grants reports whether the i-th member of a record, called name, is granted.
func (p *projection) grants(i int, name string) bool {
	if i < len(p.seen) {
		s := &p.seen[i]
		if s.name == name {
			return s.granted
		}
	}
	s := seenName{strings.Clone(name), p.granted[name]}
	switch {
	case i < len(p.seen):
		p.seen[i] = s
	case i < mostMembers:
		p.seen = append(p.seen, s)
	}
	return s.granted
}

// record encodes a Record.
func (p *projection) record(b []byte, rec unsafe.Pointer, _ int) ([]byte, error) {
	r := (*Record)(rec)
	start := len(b)
	if r.err != nil || r.strange {
		b, err := r.appendTo(b)
		if err != nil {
			return b, err
		}
		return p.apply(b, start)
	}
	from := 0 // start of the granted members not copied yet
	for i := range r.at {
		m := &r.members[i]
		if m.of != p {
			m.of, m.granted = p, p.granted[m.name]
		}
		if m.granted {
			continue
		}
		b = append(b, r.b[from:m.start]...)
		if from = len(r.b); i+1 < r.at {
			from = r.members[i+1].start
		}
	}
	b = append(b, r.b[from:]...)
	if len(b) == start {
		return append(b, '{', '}'), nil
	}
	b[start] = '{' // in place of the first comma
	return append(b, '}'), nil
}

// apply removes members from the object that begins at start in b.
func (p *projection) apply(b []byte, start int) ([]byte, error) {
	members, err := p.scan.Object(b[start:])
	if err != nil {
		return b, err
	}
	all := true
	for i, m := range members {
		all = p.grants(i, unsafe.String(unsafe.SliceData(m.Name), len(m.Name))) && all
	}
	if all {
		return b, nil
	}
	out := append(p.scratch[:0], '{')
	for i, m := range members {
		if !p.grants(i, unsafe.String(unsafe.SliceData(m.Name), len(m.Name))) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(strictjson.AppendQuote(out, m.Name), ':'), m.Value...)
	}
	p.scratch = append(out, '}')
	return append(b[:start], p.scratch...), nil
}

// A Stream encodes the records of one stream. It keeps the encoders of recent types, so
// that most records need no look-up.
type Stream struct {
	projection *projection // nil if all fields are granted
	top        top         // of the last type
	tops       [4]top      // of recent types, hashed by address
}

// NewStream returns the encoder of a stream with these granted fields; nil grants all.
func NewStream(fields []string) Stream { return Stream{projection: newProjection(fields)} }

// Append appends v as a JSON object, without members that are not granted. It is fastest
// for consecutive values of the same type.
func (s *Stream) Append(b []byte, v any) ([]byte, error) {
	words := (*[2]unsafe.Pointer)(unsafe.Pointer(&v))
	if s.top.typ == words[0] && s.top.object && words[1] != nil {
		return s.top.enc(b, words[1], onePointer)
	}
	return s.find(b, v)
}

// find is Append for a change of type, and for types that need more work.
func (s *Stream) find(b []byte, v any) ([]byte, error) {
	words := (*[2]unsafe.Pointer)(unsafe.Pointer(&v))
	t := &s.tops[uintptr(words[0])>>6%uintptr(len(s.tops))]
	if t.typ != words[0] {
		*t = s.topFor(v)
	}
	s.top = *t
	if t.object && words[1] != nil {
		return t.enc(b, words[1], onePointer)
	}
	start := len(b)
	b, err := AppendObject(b, v)
	if err == nil && s.projection != nil {
		b, err = s.projection.apply(b, start)
	}
	return b, err
}

// topFor returns the encoder for the type of v. For records and for structs that do not
// marshal themselves, and pointers to them, it is specific to this stream.
func (s *Stream) topFor(v any) top {
	t := top{typ: (*[2]unsafe.Pointer)(unsafe.Pointer(&v))[0]}
	typ := reflect.TypeOf(v)
	switch {
	case typ == nil:
		return t
	case typ.Kind() == reflect.Pointer:
		typ = typ.Elem()
	case typ.Size() == unsafe.Sizeof(uintptr(0)):
		return t // it may itself be a pointer; see top
	}
	p := s.projection
	switch {
	case typ == recordType && p == nil:
		t.enc = wholeRecord
	case typ == recordType:
		t.enc = p.record
	case typ.Kind() != reflect.Struct || special(typ) != nil:
		return t
	case p == nil:
		t.enc = encoderFor(typ)
	default:
		t.enc = projected(typ, p.granted)
	}
	t.object = true
	return t
}

var recordType = reflect.TypeFor[Record]()

func wholeRecord(b []byte, p unsafe.Pointer, _ int) ([]byte, error) { return (*Record)(p).appendTo(b) }
