package encode

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// An encoder appends the JSON of the value at p, which it must not keep. depth counts open
// containers, and separately pointers that were followed, because pointers alone can form a
// cycle.
type encoder func(b []byte, p unsafe.Pointer, depth int) ([]byte, error)

const (
	onePointer  = 1 << 16
	maxPointers = 1000
)

// tooDeep reports whether another container would exceed the host's limit.
func tooDeep(depth int) bool { return depth%onePointer >= strictjson.MaxDepth }

// ErrNotObject is returned for data that is not a JSON object.
var ErrNotObject = errors.New("guest: the value is not a JSON object")

var (
	errDepth  = errors.New("guest: the value is nested too deep, or contains itself")
	encoders  sync.Map // reflect.Type -> encoder
	building  sync.Mutex
	nullBytes = []byte("null")
)

// Append appends the JSON of v.
func Append(b []byte, v any) ([]byte, error) {
	if v == nil {
		return append(b, nullBytes...), nil
	}
	return appendValue(b, v, 0)
}

// AppendObject appends v as a JSON object, or fails with ErrNotObject.
func AppendObject(b []byte, v any) ([]byte, error) {
	start := len(b)
	var err error
	switch v := v.(type) {
	case *Record:
		if v == nil {
			return b, ErrNotObject
		}
		return v.appendTo(b)
	case json.RawMessage:
		b, err = appendRaw(b, v)
	case []byte:
		b, err = appendRaw(b, v)
	default:
		b, err = Append(b, v)
	}
	if err == nil && (len(b) == start || b[start] != '{') {
		err = ErrNotObject
	}
	return b, err
}

// appendValue appends the JSON of the value in an interface. The types into which JSON is
// decoded need no look-up.
func appendValue(b []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return appendText(b, v), nil
	case bool:
		return appendBool(b, v), nil
	case int:
		return appendInt(b, int64(v)), nil
	case float64:
		return appendFloat(b, v, 64)
	case map[string]any:
		return appendMap(b, v, depth)
	case []any:
		return appendList(b, v, depth)
	}
	t := topFor(reflect.TypeOf(v))
	return t.append(b, v, depth)
}

// A top is the encoder for values in an interface. An interface consists of two words: the
// type, and a pointer to the value or, for pointer-shaped types, the value itself.
type top struct {
	typ  unsafe.Pointer // first word of such interfaces
	enc  encoder
	form form
	// object says that the second word is a pointer, and that enc writes the object it
	// points to in the form that one stream accepts.
	object bool
}

type form uint8

const (
	behind  form = iota // the second word points to the value
	pointer             // it is itself a pointer, and enc encodes its target
	either              // neither is known
)

// topFor returns the encoder for interfaces that hold a t.
func topFor(t reflect.Type) top {
	c := top{}
	switch t.Kind() {
	case reflect.Pointer:
		c.form, c.enc = pointer, encoderFor(t.Elem())
		return c
	case reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		c.form = either
	case reflect.Struct, reflect.Array:
		if t.Size() == unsafe.Sizeof(uintptr(0)) {
			c.form = either
		}
	}
	c.enc = encoderFor(t)
	return c
}

func (c *top) append(b []byte, v any, depth int) ([]byte, error) {
	word := (*[2]unsafe.Pointer)(unsafe.Pointer(&v))[1]
	switch {
	case c.form == pointer && word == nil:
		return append(b, nullBytes...), nil
	case c.form == pointer && depth >= maxPointers*onePointer:
		return b, errDepth
	case c.form == pointer:
		return c.enc(b, word, depth+onePointer)
	case c.form == either:
		copied := reflect.New(reflect.TypeOf(v))
		copied.Elem().Set(reflect.ValueOf(v))
		return c.enc(b, copied.UnsafePointer(), depth)
	default:
		return c.enc(b, word, depth)
	}
}

// encoderFor returns the encoder of a type.
func encoderFor(t reflect.Type) encoder {
	if e, ok := encoders.Load(t); ok {
		return e.(encoder)
	}
	return build(func(c compiler) encoder { return c.compile(t) })
}

// projected returns the encoder of a struct type that writes only granted members.
func projected(t reflect.Type, granted map[string]bool) encoder {
	fields := slices.DeleteFunc(fieldsOf(t), func(f field) bool { return !granted[f.name] })
	return build(func(c compiler) encoder { return c.structure(fields) })
}

// build makes an encoder, and keeps the encoders of all types in it.
func build(program func(compiler) encoder) encoder {
	building.Lock()
	defer building.Unlock()
	c := compiler{}
	enc := program(c)
	for t, e := range c {
		encoders.Store(t, *e)
	}
	return enc
}

// A compiler makes the encoder of a type and of all types in it. It maps types to their
// encoders, so that a recursive type finds its own before it is finished.
type compiler map[reflect.Type]*encoder

func (c compiler) compile(t reflect.Type) encoder {
	if e, ok := encoders.Load(t); ok {
		return e.(encoder)
	}
	if e, ok := c[t]; ok {
		return func(b []byte, p unsafe.Pointer, depth int) ([]byte, error) { return (*e)(b, p, depth) }
	}
	e := new(encoder)
	c[t] = e
	*e = c.make(t)
	return *e
}

func (c compiler) make(t reflect.Type) encoder {
	if enc := special(t); enc != nil {
		return enc
	}
	switch t.Kind() {
	case reflect.Struct:
		return c.structure(fieldsOf(t))
	case reflect.Map:
		return c.mapping(t)
	case reflect.Slice:
		return c.slice(t)
	case reflect.Array:
		return c.array(t)
	case reflect.Pointer:
		return c.pointer(t)
	case reflect.Interface:
		return iface(t)
	default:
		return scalar(t)
	}
}

func (c compiler) pointer(t reflect.Type) encoder {
	elem := c.compile(t.Elem())
	return func(b []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		target := *(*unsafe.Pointer)(p)
		if target == nil {
			return append(b, nullBytes...), nil
		}
		if depth >= maxPointers*onePointer {
			return b, errDepth
		}
		return elem(b, target, depth+onePointer)
	}
}

func iface(t reflect.Type) encoder {
	return func(b []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		v := reflect.NewAt(t, p).Elem()
		if v.IsNil() {
			return append(b, nullBytes...), nil
		}
		return appendValue(b, v.Elem().Interface(), depth)
	}
}

func (c compiler) slice(t reflect.Type) encoder {
	if t.Elem().Kind() == reflect.Uint8 && !isMarshaler(reflect.PointerTo(t.Elem())) {
		return base64Text
	}
	if t.Elem().Kind() == reflect.String && special(t.Elem()) == nil {
		return textsOf
	}
	elem, size := c.compile(t.Elem()), t.Elem().Size()
	return func(b []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		s := (*sliceHeader)(p)
		if s.data == nil {
			return append(b, nullBytes...), nil
		}
		return items(b, s.data, s.len, size, elem, depth)
	}
}

// A sliceHeader is a slice in memory.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// appendList is items for []any, the most common list.
func appendList(b []byte, list []any, depth int) ([]byte, error) {
	if list == nil {
		return append(b, nullBytes...), nil
	}
	if tooDeep(depth) {
		return b, errDepth
	}
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if v == nil {
			b = append(b, nullBytes...)
			continue
		}
		var err error
		if b, err = appendValue(b, v, depth+1); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

func (c compiler) array(t reflect.Type) encoder {
	elem, size, n := c.compile(t.Elem()), t.Elem().Size(), t.Len()
	return func(b []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		return items(b, p, n, size, elem, depth)
	}
}

func items(b []byte, p unsafe.Pointer, n int, size uintptr, elem encoder, depth int) ([]byte, error) {
	if tooDeep(depth) {
		return b, errDepth
	}
	b = append(b, '[')
	var err error
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = elem(b, unsafe.Add(p, uintptr(i)*size), depth+1); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}
