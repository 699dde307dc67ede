package strictjson

import "iter"

// A Value is a JSON value that a Scanner has accepted. It holds the text and finds members
// and items on demand, so that a large message costs no memory. The zero Value stands for a
// missing one.
type Value struct {
	Kind Kind
	Raw  []byte // as spelled, without white space around it; part of the input
}

// ParseOptions say what Parse accepts beyond the rules of Scanner.
type ParseOptions struct {
	MaxValues int  // as in Scanner
	AnyKind   bool // accept any value, not only an object
}

// Parse checks src as a Scanner does and returns its value, which aliases src. The error is
// a *SyntaxError.
func Parse(src []byte, o ParseOptions) (Value, error) {
	s := Scanner{MaxValues: o.MaxValues}
	return s.Parse(src, o.AnyKind)
}

// Parse is the function Parse with the scratch space and limit of s. It invalidates members
// returned by Object.
func (s *Scanner) Parse(src []byte, anyKind bool) (Value, error) {
	if anyKind {
		if _, err := s.Valid(src); err != nil {
			return Value{}, err
		}
	} else if _, err := s.Object(src); err != nil {
		return Value{}, err
	}
	return ValueOf(src), nil
}

// Tree returns the member's value.
func (m Member) Tree() Value { return Value{m.Kind, m.Value} }

// ValueOf returns the first value of a text that a Scanner has accepted.
func ValueOf(src []byte) Value {
	i := skipSpace(src, 0)
	if i == len(src) {
		return Value{}
	}
	end := skipValue(src, i)
	return Value{kindOf(src[i]), src[i:end:end]}
}

// Absent reports whether v is missing or null.
func (v Value) Absent() bool { return v.Kind == 0 || v.Kind == KindNull }

// Is reports whether v is of kind k.
func (v Value) Is(k Kind) bool { return v.Kind == k }

// HasType reports whether v has a JSON Schema type, where an integer is a safe integer and
// a number is finite. Every value has an unknown type or "".
func (v Value) HasType(name string) (ok bool) {
	switch name {
	case "string":
		return v.Is(KindString)
	case "integer":
		_, ok = v.SafeInteger()
		return ok
	case "number":
		_, ok = v.Float64()
		return ok
	case "boolean":
		return v.Is(KindBool)
	case "array":
		return v.Is(KindArray)
	case "object":
		return v.Is(KindObject)
	}
	return true
}

// Text returns the text of a string. ok is false for any other kind.
func (v Value) Text() (text string, ok bool) {
	if v.Kind != KindString {
		return "", false
	}
	return String(v.Raw), true
}

// Equal reports whether v is a string that spells text. It does not allocate.
func (v Value) Equal(text string) bool { return v.Kind == KindString && EqualText(v.Raw, text) }

// Bool returns the value of true or false. ok is false for any other kind.
func (v Value) Bool() (value, ok bool) {
	return v.Kind == KindBool && v.Raw[0] == 't', v.Kind == KindBool
}

// Int64 returns the value of a number that is a 64-bit integer.
func (v Value) Int64() (int64, bool) {
	if v.Kind != KindNumber {
		return 0, false
	}
	return Int64(v.Raw)
}

// SafeInteger returns the value of a number that is a safe integer.
func (v Value) SafeInteger() (int64, bool) {
	if v.Kind != KindNumber {
		return 0, false
	}
	return SafeInteger(v.Raw)
}

// Float64 returns the value of a number, if it is finite.
func (v Value) Float64() (float64, bool) {
	if v.Kind != KindNumber {
		return 0, false
	}
	return Float64(v.Raw)
}

// Member returns the member called name, or the zero Value. It reads the object from its
// start; to look up names that a guest chose, range over Members once instead.
func (v Value) Member(name string) (Value, bool) {
	for raw, member := range v.RawMembers() {
		if EqualText(raw, name) {
			return member, true
		}
	}
	return Value{}, false
}

// Members yields the names and values of an object in order, and nothing for any other
// kind.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for raw, member := range v.RawMembers() {
			if !yield(String(raw), member) {
				return
			}
		}
	}
}

// RawMembers is Members with the names as they are spelled.
func (v Value) RawMembers() iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) {
		if v.Kind != KindObject {
			return
		}
		src := v.Raw
		i := skipSpace(src, 1)
		for i < len(src) && src[i] == '"' {
			end := skipString(src, i)
			name := src[i:end]
			i = skipSpace(src, skipSpace(src, end)+1)
			end = skipValue(src, i)
			if i >= end || !yield(name, Value{kindOf(src[i]), src[i:end:end]}) {
				return
			}
			i = skipSpace(src, skipSpace(src, end)+1)
		}
	}
}

// Items yields the items of an array in order, and nothing for any other kind.
func (v Value) Items() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind != KindArray {
			return
		}
		src := v.Raw
		i := skipSpace(src, 1)
		for i < len(src) && src[i] != ']' {
			end := skipValue(src, i)
			if i >= end || !yield(Value{kindOf(src[i]), src[i:end:end]}) {
				return
			}
			i = skipSpace(src, skipSpace(src, end)+1)
		}
	}
}

// Len returns the number of members or items of v, 0 for any other kind.
func (v Value) Len() int {
	n := 0
	if v.Kind == KindObject {
		for range v.RawMembers() {
			n++
		}
		return n
	}
	for range v.Items() {
		n++
	}
	return n
}
