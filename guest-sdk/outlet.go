package guest

import (
	"reflect"
	"unsafe"
)

// An outlet is a stream of the scope, as records are sent through it: with what
// one run learned of them, so that the next costs no look-up.
type outlet struct {
	index      uint16
	projection *projection // nil where all fields are granted
	top        top         // of the type that came last
	tops       [4]top      // of the types that come, by address
}

// outlet returns that of a stream, nil for one that is not in scope. The same
// stream, most often the same string, comes many times in a row.
func (r *Run) outlet(stream string) *outlet {
	i, ok := r.streams[stream]
	if !ok {
		return nil
	}
	r.last, r.lastName = &r.outlets[i], stream
	return r.last
}

// append appends the object that v is, without what is not granted.
func (o *outlet) append(b []byte, v any) ([]byte, error) {
	words := (*[2]unsafe.Pointer)(unsafe.Pointer(&v))
	t := &o.tops[uintptr(words[0])>>6%uintptr(len(o.tops))]
	if t.typ != words[0] {
		*t = o.topFor(v)
	}
	o.top = *t
	if t.object && words[1] != nil {
		return t.enc(b, words[1], onePointer)
	}
	start := len(b)
	b, err := appendObject(b, v)
	if err == nil && o.projection != nil {
		b, err = o.projection.apply(b, start)
	}
	return b, err
}

// topFor returns the program for the type of v. For records and for structs that
// do not write themselves, or pointers to them, it is a program of this stream.
func (o *outlet) topFor(v any) top {
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
	p := o.projection
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
