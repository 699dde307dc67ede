package guest

import (
	"encoding/base64"
	"errors"
	"math"
	"reflect"
	"strconv"
	"unsafe"

	"github.com/sluicehost/sluice/abi"
)

var errFloat = errors.New("guest: JSON has no infinity and no NaN")

// scalar returns the program of a type without parts, or one that refuses.
func scalar(t reflect.Type) encoder {
	switch t.Kind() {
	case reflect.String:
		return textOf
	case reflect.Bool:
		return func(b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
			return appendBool(b, *(*bool)(p)), nil
		}
	case reflect.Int:
		return integerOf[int]
	case reflect.Int8:
		return integerOf[int8]
	case reflect.Int16:
		return integerOf[int16]
	case reflect.Int32:
		return integerOf[int32]
	case reflect.Int64:
		return integerOf[int64]
	case reflect.Uint:
		return naturalOf[uint]
	case reflect.Uint8:
		return naturalOf[uint8]
	case reflect.Uint16:
		return naturalOf[uint16]
	case reflect.Uint32:
		return naturalOf[uint32]
	case reflect.Uint64:
		return naturalOf[uint64]
	case reflect.Uintptr:
		return naturalOf[uintptr]
	case reflect.Float32:
		return func(b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
			return appendFloat(b, float64(*(*float32)(p)), 32)
		}
	case reflect.Float64:
		return func(b []byte, p unsafe.Pointer, _ int) ([]byte, error) { return appendFloat(b, *(*float64)(p), 64) }
	default:
		return refuse(t)
	}
}

// refuse is the program of a type that JSON has nothing for.
func refuse(t reflect.Type) encoder {
	err := errors.New("guest: no JSON for type " + t.String())
	return func(b []byte, _ unsafe.Pointer, _ int) ([]byte, error) { return b, err }
}

func textOf(b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	return appendText(b, *(*string)(p)), nil
}

// textsOf is the program of a slice of texts.
func textsOf(b []byte, p unsafe.Pointer, depth int) ([]byte, error) {
	list := *(*[]string)(p)
	if list == nil {
		return append(b, nullBytes...), nil
	}
	if tooDeep(depth) {
		return b, errDepth
	}
	return appendTexts(b, list), nil
}

func appendTexts(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, s)
	}
	return append(b, ']')
}

func integerOf[T int | int8 | int16 | int32 | int64](b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	return appendInt(b, int64(*(*T)(p))), nil
}

func naturalOf[T uint | uint8 | uint16 | uint32 | uint64 | uintptr](b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	return appendUint(b, uint64(*(*T)(p))), nil
}

// appendFloat writes a number as ECMAScript does, which is what encoding/json
// does.
func appendFloat(b []byte, f float64, bits int) ([]byte, error) {
	if bits == 64 {
		if short, ok := appendThousandths(b, f); ok {
			return short, nil
		}
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return b, errFloat
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 {
		if bits == 64 && (abs < 1e-6 || abs >= 1e21) || bits == 32 && (float32(abs) < 1e-6 || float32(abs) >= 1e21) {
			format = 'e'
		}
	}
	b = strconv.AppendFloat(b, f, format, -1, bits)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-09 to e-9
		b = b[:n-1]
	}
	return b, nil
}

// appendThousandths appends a number that has at most three decimals and twelve
// digits before them, such as an amount of money, without the 128-bit
// arithmetic of the general case. A quotient of two integers is rounded once, so
// if it is f, the decimal reads as f; and no other of 15 digits or fewer does,
// so it is the shortest.
func appendThousandths(b []byte, f float64) ([]byte, bool) {
	abs := math.Abs(f)
	if !(abs < 1e12) || abs == 0 {
		return b, false
	}
	n := uint64(abs*1000 + 0.5)
	if float64(n)/1000 != abs {
		return b, false
	}
	if f < 0 {
		b = append(b, '-')
	}
	whole := n / 1000
	b = appendUint(b, whole)
	d := uint32(n - whole*1000)
	switch {
	case d == 0:
		return b, true
	case d%100 == 0:
		return append(b, '.', '0'+byte(d/100)), true
	case d%10 == 0:
		return append(b, '.', '0'+byte(d/100), '0'+byte(d/10%10)), true
	}
	return append(b, '.', '0'+byte(d/100), '0'+byte(d/10%10), '0'+byte(d%10)), true
}

func base64Text(b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	s := *(*[]byte)(p)
	if s == nil {
		return append(b, nullBytes...), nil
	}
	b = base64.StdEncoding.AppendEncode(append(b, '"'), s)
	return append(b, '"'), nil
}

// quotable reports whether the string option of a tag means anything for t.
func quotable(t reflect.Type) bool {
	if t.Name() == "" && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Uintptr, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	default:
		return false
	}
}

// quoted puts the JSON of a scalar into a string: the string option of a tag.
// As in encoding/json, a type that writes itself is left alone.
func quoted(t reflect.Type, enc encoder) encoder {
	base := t
	if t.Kind() == reflect.Pointer {
		base = t.Elem()
	}
	if special(base) != nil && base != numberType {
		return enc
	}
	return func(b []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		if t.Kind() == reflect.Pointer && *(*unsafe.Pointer)(p) == nil {
			return append(b, nullBytes...), nil
		}
		if base.Kind() != reflect.String || base == numberType {
			b, err := enc(append(b, '"'), p, depth)
			return append(b, '"'), err
		}
		inner, err := enc(nil, p, depth)
		return abi.AppendQuote(b, inner), err
	}
}
