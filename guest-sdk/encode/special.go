package encode

import (
	"encoding/json"
	"errors"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// The interfaces of encoding and encoding/json, declared here to avoid linking those
// packages.
type (
	marshaler     interface{ MarshalJSON() ([]byte, error) }
	textMarshaler interface{ MarshalText() ([]byte, error) }
)

var (
	marshalerType     = reflect.TypeFor[marshaler]()
	textMarshalerType = reflect.TypeFor[textMarshaler]()
	timeType          = reflect.TypeFor[time.Time]()
	rawType           = reflect.TypeFor[json.RawMessage]()
	numberType        = reflect.TypeFor[json.Number]()
)

// isMarshaler reports whether t marshals itself.
func isMarshaler(t reflect.Type) bool {
	return t.Implements(marshalerType) || t.Implements(textMarshalerType)
}

// special returns the encoder of a type with a representation of its own, or nil.
func special(t reflect.Type) encoder {
	switch t {
	case timeType:
		return timeText
	case rawType:
		return rawJSON
	case numberType:
		return numberJSON
	}
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return nil // decided by the value it holds or points to
	}
	// A method of the pointer counts even if the value is not addressable, where
	// encoding/json depends on how the value was passed.
	p := reflect.PointerTo(t)
	switch {
	case p.Implements(marshalerType):
		return marshalled(t, !t.Implements(marshalerType))
	case p.Implements(textMarshalerType):
		return textual(t, !t.Implements(textMarshalerType))
	default:
		return nil
	}
}

// timeText writes a time in RFC 3339 with its fraction, as encoding/json does.
func timeText(b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	t := (*time.Time)(p)
	if y := t.Year(); y < 0 || y > 9999 {
		return b, errors.New("guest: RFC 3339 has no year before 0 or after 9999")
	}
	b = t.AppendFormat(append(b, '"'), time.RFC3339Nano)
	return append(b, '"'), nil
}

// rawJSON writes raw JSON, after a check: malformed JSON would end the run.
func rawJSON(b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	raw := *(*[]byte)(p)
	if raw == nil {
		return append(b, nullBytes...), nil
	}
	return appendRaw(b, raw)
}

// scanners holds scratch space for checking JSON from elsewhere.
var scanners = sync.Pool{New: func() any { return new(strictjson.Scanner) }}

func appendRaw(b, raw []byte) ([]byte, error) {
	s := scanners.Get().(*strictjson.Scanner)
	defer scanners.Put(s)
	if _, err := s.Valid(raw); err != nil {
		return b, err
	}
	return strictjson.AppendCompact(b, raw), nil
}

func numberJSON(b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	n := *(*string)(p)
	if n == "" {
		n = "0"
	}
	s := scanners.Get().(*strictjson.Scanner)
	defer scanners.Put(s)
	if kind, err := s.Valid([]byte(n)); err != nil || kind != strictjson.KindNumber {
		return b, errors.New("guest: a json.Number is not a number")
	}
	return append(b, n...), nil
}

// addressed returns the value at p, or a pointer to it, for a call of its marshal method.
func addressed(t reflect.Type, p unsafe.Pointer, byPointer bool) any {
	v := reflect.NewAt(t, p)
	if byPointer {
		return v.Interface()
	}
	return v.Elem().Interface()
}

func marshalled(t reflect.Type, byPointer bool) encoder {
	return func(b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
		raw, err := addressed(t, p, byPointer).(marshaler).MarshalJSON()
		if err != nil {
			return b, err
		}
		return appendRaw(b, raw)
	}
}

func textual(t reflect.Type, byPointer bool) encoder {
	return func(b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
		text, err := addressed(t, p, byPointer).(textMarshaler).MarshalText()
		if err != nil {
			return b, err
		}
		return strictjson.AppendQuote(b, text), nil
	}
}
