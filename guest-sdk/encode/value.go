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

// An encoder appends the JSON of the value at p. It must not keep p. The depth
// counts open containers, and pointers gone through apart from them, since
// pointers alone can go round in a circle too.
type encoder func(b []byte, p unsafe.Pointer, depth int) ([]byte, error)

const (
	onePointer  = 1 << 16
	maxPointers = 1000
)

// tooDeep reports whether one more container is more than a host takes.
func tooDeep(depth int) bool { return depth%onePointer >= strictjson.MaxDepth }

// ErrNotObject is returned for data that is no JSON object.
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

// AppendObject appends the JSON object that v is, or fails with ErrNotObject.
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

// appendValue appends the JSON of what an interface holds. The types that JSON
// decodes to need no look-up.
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

// A top is the program for values in an interface. An interface is two words:
// the type, and a pointer to the value or, for what is a pointer itself, the
// value.
type top struct {
	typ  unsafe.Pointer // the first word of such interfaces
	enc  encoder
	form form
	// object: the second word is a pointer, and enc writes an object for what it
	// points to, as one stream takes it.
	object bool
}

type form uint8

const (
	behind  form = iota // the second word points to the value
	pointer             // it is a pointer, and enc is for what it points to
	either              // neither can be told
)

// topFor returns the program for interfaces that hold a t.
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

// encoderFor returns the program of a type.
func encoderFor(t reflect.Type) encoder {
	if e, ok := encoders.Load(t); ok {
		return e.(encoder)
	}
	return build(func(c compiler) encoder { return c.compile(t) })
}

// projected returns the program of a struct type of which only the members that
// are granted are written.
func projected(t reflect.Type, granted map[string]bool) encoder {
	fields := slices.DeleteFunc(fieldsOf(t), func(f field) bool { return !granted[f.name] })
	return build(func(c compiler) encoder { return c.structure(fields) })
}

// build makes a program, and keeps those of the types in it.
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

// A compiler makes the program of a type and of everything in it. It maps the
// types seen to their programs, which a type that contains itself finds here
// before they are finished.
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

// appendList is items for the list that everybody uses.
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
