package encode

import (
	"encoding/base64"
	"errors"
	"math"
	"math/bits"
	"reflect"
	"strconv"
	"unsafe"

	"github.com/sluicehost/sluice/abi/strictjson"
)

var errFloat = errors.New("guest: JSON has no infinity and no NaN")

// scalar returns the encoder of a type without parts, or one that fails.
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

// refuse returns an encoder that fails, for a type that JSON cannot represent.
func refuse(t reflect.Type) encoder {
	err := errors.New("guest: no JSON for type " + t.String())
	return func(b []byte, _ unsafe.Pointer, _ int) ([]byte, error) { return b, err }
}

func textOf(b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	return appendText(b, *(*string)(p)), nil
}

// textsOf encodes a slice of strings.
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

// appendFloat appends a number in the format of ECMAScript, as encoding/json does.
func appendFloat(b []byte, f float64, size int) ([]byte, error) {
	if size == 64 {
		b = grow(b, room)
		if n := nothing.putFloat(end(b), f); n > 0 {
			return b[:len(b)+n], nil
		}
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return b, errFloat
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 {
		if size == 64 && (abs < 1e-6 || abs >= 1e21) || size == 32 && (float32(abs) < 1e-6 || float32(abs) >= 1e21) {
			format = 'e'
		}
	}
	b = strconv.AppendFloat(b, f, format, -1, size)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1] // 1e-09 becomes 1e-9
		b = b[:n-1]
	}
	return b, nil
}

// putFloat writes the literal and a number with at most three decimals and twelve digits
// before them, such as an amount of money, and returns the length, or 0 for any other
// number. It avoids the 128-bit arithmetic of the general case. It is exact: the quotient
// of two integers is rounded once, so if it equals f, the decimal parses as f; and no other
// decimal of 15 digits or fewer does, so it is the shortest.
func (l *literal) putFloat(dst unsafe.Pointer, f float64) int {
	abs := math.Abs(f)
	if !(abs < 1e12) {
		return 0
	}
	n := uint64(abs*1000 + 0.5)
	if float64(n)/1000 != abs || n == 0 {
		return 0
	}
	at := l.put(dst)
	size := int(math.Float64bits(f) >> 63)
	*(*byte)(at) = '-'
	at = unsafe.Add(at, size)
	whole := n / 1000
	places := digits(n-whole*1000) >> 40 // three digits
	if whole >= eightDigits {
		k := putUint(at, whole)
		at, size = unsafe.Add(at, k), size+k
	} else {
		w := digits(whole)
		zeros := bits.TrailingZeros64(w|1<<56) & 56
		*(*uint64)(at) = (w | ones*'0') >> (zeros & 63)
		at, size = unsafe.Add(at, 8-zeros>>3), size+8-zeros>>3
	}
	if places != 0 {
		*(*uint32)(at) = '.' | uint32(places|ones&0xffffff*'0')<<8
		size += bits.Len64(places)>>3 + 2
	}
	return l.size + size
}

func base64Text(b []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	s := *(*[]byte)(p)
	if s == nil {
		return append(b, nullBytes...), nil
	}
	b = base64.StdEncoding.AppendEncode(append(b, '"'), s)
	return append(b, '"'), nil
}

// quotable reports whether the string option of a tag applies to t.
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

// quoted wraps an encoder for the string option of a tag, so that it writes the scalar
// inside a string. As in encoding/json, types that marshal themselves are unaffected.
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
		return strictjson.AppendQuote(b, inner), err
	}
}
