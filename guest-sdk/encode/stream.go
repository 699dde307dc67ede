package encode

import (
	"reflect"
	"unsafe"
)

// A Stream encodes the records of one stream. It keeps what it learned of the
// types that come, so that the next record costs no look-up.
type Stream struct {
	projection *projection // nil where all fields are granted
	top        top         // of the type that came last
	tops       [4]top      // of the types that come, by address
}

// NewStream returns the encoder of a stream of which only these fields are
// granted; nil for all.
func NewStream(fields []string) Stream { return Stream{projection: newProjection(fields)} }

// Append appends the JSON object that v is, without what is not granted. The
// same type most often comes many times in a row.
func (s *Stream) Append(b []byte, v any) ([]byte, error) {
	words := (*[2]unsafe.Pointer)(unsafe.Pointer(&v))
	if s.top.typ == words[0] && s.top.object && words[1] != nil {
		return s.top.enc(b, words[1], onePointer)
	}
	return s.find(b, v)
}

// find is Append for another type than last time, or one that needs more.
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

// topFor returns the program for the type of v. For records and for structs that
// do not write themselves, or pointers to them, it is a program of this stream.
func (s *Stream) topFor(v any) top {
	t := top{typ: (*[2]unsafe.Pointer)(unsafe.Pointer(&v))[0]}
	typ := reflect.TypeOf(v)
	switch {
	case typ == nil:
		return t
	case typ.Kind() == reflect.Pointer:
		typ = typ.Elem()
	case typ.Size() == unsafe.Sizeof(uintptr(0)):
		return t // it may be a pointer itself, see top
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
