package guest

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unsafe"

	"github.com/sluicehost/sluice/abi"
)

// A field is one member that a struct contributes.
type field struct {
	name      string
	tagged    bool
	index     []int // path from the outer struct, for the precedence of names
	typ       reflect.Type
	hops      []hop // embedded pointers on the way
	offset    uintptr
	omitEmpty bool
	omitZero  bool
	quoted    bool
}

// A hop is an embedded pointer: the offset of the pointer within what it is
// embedded in.
type hop uintptr

// A member is a field, compiled. Texts and small numbers, most of what records
// are made of, are written without a call through enc.
type member struct {
	head   literal // ,"name":
	kind   reflect.Kind
	enc    encoder
	skip   func(p unsafe.Pointer) bool // nil when the member is never left out
	hops   []hop
	offset uintptr
}

func (c compiler) structure(t reflect.Type) encoder {
	members := make([]member, 0, t.NumField())
	for _, f := range fieldsOf(t) {
		m := member{hops: f.hops, offset: f.offset}
		m.head = literalOf(append(abi.AppendQuote([]byte{','}, f.name), ':'))
		m.enc = c.compile(f.typ)
		if f.quoted {
			m.enc = quoted(f.typ, m.enc)
		}
		m.skip = skipper(f)
		if special(f.typ) == nil && !f.quoted {
			m.kind = f.typ.Kind()
		}
		members = append(members, m)
	}
	return func(b []byte, base unsafe.Pointer, depth int) ([]byte, error) {
		if tooDeep(depth) {
			return b, errDepth
		}
		depth++
		start := len(b)
		var err error
		for i := range members {
			m := &members[i]
			p := base
			if m.hops != nil {
				if p = follow(p, m.hops); p == nil {
					continue
				}
			}
			p = unsafe.Add(p, m.offset)
			if m.skip != nil && m.skip(p) {
				continue
			}
			if m.kind == reflect.String {
				b = m.head.appendText(b, *(*string)(p))
				continue
			}
			b = m.head.append(b)
			switch m.kind {
			case reflect.Int:
				b = appendInt(b, int64(*(*int)(p)))
			case reflect.Bool:
				b = appendBool(b, *(*bool)(p))
			default:
				if b, err = m.enc(b, p, depth); err != nil {
					return b, err
				}
			}
		}
		if len(b) == start {
			return append(b, '{', '}'), nil
		}
		b[start] = '{' // where the first comma was
		return append(b, '}'), nil
	}
}

// follow goes through embedded pointers, and returns nil at one that is nil.
func follow(p unsafe.Pointer, hops []hop) unsafe.Pointer {
	for _, h := range hops {
		if p = *(*unsafe.Pointer)(unsafe.Add(p, uintptr(h))); p == nil {
			return nil
		}
	}
	return p
}

// fieldsOf lists the members of a struct as encoding/json does: embedded
// structs contribute theirs, and of several with one name the shallowest, then
// the only tagged one, stands; otherwise none does.
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
						all = append(all, f) // twice on one level: both go
					}
				}
			}
		}
		level = next
	}
	return dominant(all)
}

// fieldAt reads one field of a struct. embedded says that its own fields are to
// be read in its place.
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

// dominant keeps the field that stands for each name, in declaration order.
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

// validName reports whether encoding/json takes a name in a tag.
func validName(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return s != ""
}
