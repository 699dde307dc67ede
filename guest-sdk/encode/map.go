package encode

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// mapping encodes a map with its names in byte order, as encoding/json does.
func (c compiler) mapping(t reflect.Type) encoder {
	name := nameOf(t.Key())
	if name == nil {
		return refuse(t)
	}
	if t == reflect.TypeFor[map[string]any]() {
		return anyMap
	}
	elem := c.compile(t.Elem())
	return func(b []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		v := reflect.NewAt(t, p).Elem()
		if v.IsNil() {
			return append(b, nullBytes...), nil
		}
		if tooDeep(depth) {
			return b, errDepth
		}
		type entry struct {
			name  string
			value reflect.Value
		}
		entries := make([]entry, 0, v.Len())
		for key, value := range v.Seq2() {
			n, err := name(key)
			if err != nil {
				return b, err
			}
			entries = append(entries, entry{n, value})
		}
		slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
		slot := reflect.New(t.Elem())
		b = append(b, '{')
		var err error
		for i, e := range entries {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, e.name), ':')
			slot.Elem().Set(e.value)
			if b, err = elem(b, slot.UnsafePointer(), depth+1); err != nil {
				return b, err
			}
		}
		return append(b, '}'), nil
	}
}

func anyMap(b []byte, p unsafe.Pointer, depth int) ([]byte, error) {
	return appendMap(b, *(*map[string]any)(p), depth)
}

// appendMap is mapping for the most common map, without reflection.
func appendMap(b []byte, m map[string]any, depth int) ([]byte, error) {
	if m == nil {
		return append(b, nullBytes...), nil
	}
	if tooDeep(depth) {
		return b, errDepth
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	var err error
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
		v := m[name]
		if v == nil {
			b = append(b, nullBytes...)
			continue
		}
		if b, err = appendValue(b, v, depth+1); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// nameOf returns the function that converts keys of type t to member names, or nil if there
// is none.
func nameOf(t reflect.Type) func(reflect.Value) (string, error) {
	switch {
	case t.Kind() == reflect.String:
		return func(v reflect.Value) (string, error) { return v.String(), nil }
	case t.Implements(textMarshalerType):
		return func(v reflect.Value) (string, error) {
			if v.Kind() == reflect.Pointer && v.IsNil() {
				return "", nil
			}
			text, err := v.Interface().(textMarshaler).MarshalText()
			return string(text), err
		}
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(v reflect.Value) (string, error) { return strconv.FormatInt(v.Int(), 10), nil }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return func(v reflect.Value) (string, error) { return strconv.FormatUint(v.Uint(), 10), nil }
	default:
		return nil
	}
}
