package encode

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unsafe"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// A field is a member of a struct's JSON object.
type field struct {
	name      string
	tagged    bool
	index     []int // path from the outer struct, which decides between equal names
	typ       reflect.Type
	hops      []hop // embedded pointers on the path
	offset    uintptr
	omitEmpty bool
	omitZero  bool
	quoted    bool
}

// A hop is the offset of an embedded pointer in its struct.
type hop uintptr

// A member is a compiled field. Strings, numbers and booleans, most of what records consist
// of, are written without a call of enc.
type member struct {
	literal // ,"name":
	offset  uintptr
	kind    reflect.Kind // of strings, numbers and booleans; Invalid means that enc writes it
	plain   bool         // a string without hops, skip or a long literal
	enc     encoder
	skip    func(p unsafe.Pointer) bool // nil if the member is never left out
	hops    []hop
}

func (c compiler) structure(fields []field) encoder {
	members := make([]member, 0, len(fields))
	for _, f := range fields {
		m := member{hops: f.hops, offset: f.offset, skip: skipper(f)}
		m.literal = *literalOf(append(strictjson.AppendQuote([]byte{','}, f.name), ':'))
		m.enc = c.compile(f.typ)
		if f.quoted {
			m.enc = quoted(f.typ, m.enc)
		}
		if special(f.typ) == nil && !f.quoted {
			m.kind = f.typ.Kind()
		}
		m.plain = m.kind == reflect.String && m.hops == nil && m.skip == nil && m.long == nil
		members = append(members, m)
	}
	return func(b []byte, base unsafe.Pointer, depth int) ([]byte, error) {
		if tooDeep(depth) {
			return b, errDepth
		}
		start := len(b)
		for i := range members {
			m := &members[i]
			if !m.plain {
				var err error
				if b, err = m.append(b, base, depth+1); err != nil {
					return b, err
				}
				continue
			}
			s := *(*string)(unsafe.Add(base, m.offset))
			if cap(b)-len(b) < len(s)+room {
				b = grow(b, len(s)+room)
			}
			at := m.put(end(b))
			if n := len(s); uint(n-8) <= 24 { // inlined putText
				w0, w1, w2, w3 := words(unsafe.Pointer(unsafe.StringData(s)), n)
				if (escapes(w0)|escapes(w1)|escapes(w2)|escapes(w3))&highs == 0 {
					*(*byte)(at) = '"'
					putWords(unsafe.Add(at, 1), n, w0, w1, w2, w3)
					*(*byte)(unsafe.Add(at, 1+n)) = '"'
					b = b[:len(b)+m.size+n+2]
					continue
				}
			}
			b = m.appendText(b, s)
		}
		if len(b) == start {
			return append(b, '{', '}'), nil
		}
		b[start] = '{' // in place of the first comma
		return append(b, '}'), nil
	}
}

// append appends a member of any kind.
func (m *member) append(b []byte, base unsafe.Pointer, depth int) ([]byte, error) {
	l, p := &m.literal, unsafe.Add(base, m.offset)
	if m.hops != nil || m.skip != nil {
		if p = m.find(base); p == nil {
			return b, nil
		}
	}
	if l.long != nil || cap(b)-len(b) < room {
		b, l = l.open(b, 0)
	}
	n := 0
	switch m.kind {
	case reflect.Int:
		n = l.putInt(end(b), int64(*(*int)(p)))
	case reflect.Bool:
		n = l.putBool(end(b), *(*bool)(p))
	case reflect.Int64:
		n = l.putInt(end(b), *(*int64)(p))
	case reflect.Float64:
		n = l.putFloat(end(b), *(*float64)(p))
	case reflect.String:
		return l.appendText(b, *(*string)(p)), nil
	}
	if n == 0 {
		return m.enc(l.append(b), p, depth)
	}
	return b[:len(b)+n], nil
}

// find returns the address of the member, or nil if it is left out.
func (m *member) find(base unsafe.Pointer) unsafe.Pointer {
	if base = follow(base, m.hops); base == nil {
		return nil
	}
	p := unsafe.Add(base, m.offset)
	if m.skip != nil && m.skip(p) {
		return nil
	}
	return p
}

// follow follows embedded pointers, and returns nil if one is nil.
func follow(p unsafe.Pointer, hops []hop) unsafe.Pointer {
	for _, h := range hops {
		if p = *(*unsafe.Pointer)(unsafe.Add(p, uintptr(h))); p == nil {
			return nil
		}
	}
	return p
}

// fieldsOf lists the members of a struct as encoding/json does: those of embedded structs
// are included, and of several with the same name the shallowest wins, then the only tagged
// one; otherwise all are dropped.
func fieldsOf(t reflect.Type) []field {
	var all []field
	seen := map[reflect.Type]bool{}
	level := []field{{typ: t}}
	for len(level) > 0 {
		var next []field
		count := map[reflect.Type]int{}
		for _, outer := range level {
			count[outer.typ]++
		}
		for _, outer := range level {
			if seen[outer.typ] {
				continue
			}
			seen[outer.typ] = true
			for i := range outer.typ.NumField() {
				f, embedded, ok := fieldAt(outer, i)
				switch {
				case !ok:
				case embedded:
					next = append(next, f)
				default:
					all = append(all, f)
					if count[outer.typ] > 1 {
						all = append(all, f) // twice on one level: both are dropped
					}
				}
			}
		}
		level = next
	}
	return dominant(all)
}

// fieldAt reads one field of a struct. embedded says that its own fields take its place.
func fieldAt(outer field, i int) (f field, embedded, ok bool) {
	sf := outer.typ.Field(i)
	t := sf.Type
	if sf.Anonymous {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if !sf.IsExported() && t.Kind() != reflect.Struct {
			return f, false, false
		}
	} else if !sf.IsExported() {
		return f, false, false
	}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return f, false, false
	}
	name, options, _ := strings.Cut(tag, ",")
	if !validName(name) {
		name = ""
	}
	f = field{
		name: name, tagged: name != "", typ: sf.Type, hops: outer.hops,
		index: append(slices.Clone(outer.index), i), offset: outer.offset + sf.Offset,
	}
	if name == "" && sf.Anonymous && t.Kind() == reflect.Struct {
		if sf.Type.Kind() == reflect.Pointer {
			f.hops = append(slices.Clone(outer.hops), hop(f.offset))
			f.offset = 0
		}
		f.typ = t
		return f, true, true
	}
	if name == "" {
		f.name = sf.Name
	}
	for o := range strings.SplitSeq(options, ",") {
		switch o {
		case "omitempty":
			f.omitEmpty = true
		case "omitzero":
			f.omitZero = true
		case "string":
			f.quoted = quotable(sf.Type)
		}
	}
	return f, false, true
}

// dominant keeps the winning field of each name, in declaration order.
func dominant(all []field) []field {
	byName := map[string][]field{}
	for _, f := range all {
		byName[f.name] = append(byName[f.name], f)
	}
	var out []field
	for _, fields := range byName {
		slices.SortStableFunc(fields, func(a, b field) int {
			if d := len(a.index) - len(b.index); d != 0 {
				return d
			}
			if a.tagged != b.tagged {
				if a.tagged {
					return -1
				}
				return 1
			}
			return slices.Compare(a.index, b.index)
		})
		first := fields[0]
		if len(fields) > 1 && len(fields[1].index) == len(first.index) && fields[1].tagged == first.tagged {
			continue
		}
		out = append(out, first)
	}
	slices.SortFunc(out, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return out
}

// validName reports whether encoding/json accepts a name in a tag.
func validName(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return s != ""
}

// zeroer is the method that omitzero calls if a type has it.
type zeroer interface{ IsZero() bool }

var zeroerType = reflect.TypeFor[zeroer]()

// skipper returns the test by which a field is left out, or nil.
func skipper(f field) func(unsafe.Pointer) bool {
	var empty, zero func(unsafe.Pointer) bool
	if f.omitEmpty {
		empty = isEmpty(f.typ)
	}
	if f.omitZero {
		zero = isZero(f.typ)
	}
	switch {
	case empty == nil:
		return zero
	case zero == nil:
		return empty
	default:
		return func(p unsafe.Pointer) bool { return empty(p) || zero(p) }
	}
}

// isEmpty returns the test of omitempty, or nil for types that are never empty.
func isEmpty(t reflect.Type) func(unsafe.Pointer) bool {
	switch t.Kind() {
	case reflect.String:
		return func(p unsafe.Pointer) bool { return len(*(*string)(p)) == 0 }
	case reflect.Slice:
		return func(p unsafe.Pointer) bool { return (*sliceHeader)(p).len == 0 }
	case reflect.Map:
		return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().Len() == 0 }
	case reflect.Array:
		if t.Len() == 0 {
			return func(unsafe.Pointer) bool { return true }
		}
		return nil
	case reflect.Pointer:
		return func(p unsafe.Pointer) bool { return *(*unsafe.Pointer)(p) == nil }
	case reflect.Interface:
		return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().IsNil() }
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64:
		return plainZero(t)
	default:
		return nil
	}
}

// isZero returns the test of omitzero.
func isZero(t reflect.Type) func(unsafe.Pointer) bool {
	switch {
	case t.Kind() == reflect.Interface && t.Implements(zeroerType):
		return func(p unsafe.Pointer) bool {
			v := reflect.NewAt(t, p).Elem()
			return v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() || v.Interface().(zeroer).IsZero()
		}
	case t.Kind() == reflect.Pointer && t.Implements(zeroerType):
		return func(p unsafe.Pointer) bool {
			return *(*unsafe.Pointer)(p) == nil || reflect.NewAt(t, p).Elem().Interface().(zeroer).IsZero()
		}
	case reflect.PointerTo(t).Implements(zeroerType):
		return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Interface().(zeroer).IsZero() }
	case t.Kind() == reflect.String:
		return isEmpty(t)
	default:
		return plainZero(t)
	}
}

func plainZero(t reflect.Type) func(unsafe.Pointer) bool {
	switch t.Kind() {
	case reflect.Bool:
		return func(p unsafe.Pointer) bool { return !*(*bool)(p) }
	case reflect.Int:
		return func(p unsafe.Pointer) bool { return *(*int)(p) == 0 }
	case reflect.Int64:
		return func(p unsafe.Pointer) bool { return *(*int64)(p) == 0 }
	default:
		return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().IsZero() }
	}
}
