package timeline

import (
	"fmt"
	"slices"
	"strings"
)

// A Filter selects event types. The zero Filter selects all of them.
type Filter struct {
	// OpenwopOnly leaves out types that openwop does not define.
	OpenwopOnly bool
	exact       map[Type]bool
	prefixes    []string
}

// The bounds of a list of types.
const (
	maxFilterNames = 64
	maxFilterName  = 64
)

// ParseVocabulary parses a vocabulary parameter; "" is full. The error is a *ParameterError.
func ParseVocabulary(text string) (openwopOnly bool, err error) {
	switch text {
	case "", "full":
		return false, nil
	case "openwop":
		return true, nil
	}
	return false, &ParameterError{"vocabulary", "full or openwop"}
}

// ParseTypes parses a comma-separated list of types, in which a trailing * matches a prefix; ""
// means all. The error is a *ParameterError.
func ParseTypes(text string) (Filter, error) {
	var f Filter
	if text == "" {
		return f, nil
	}
	bad := &ParameterError{"types",
		"at most 64 event types with commas between them, each of at most 64 characters, * only at its end"}
	f.exact = map[Type]bool{}
	n := 0
	for name := range strings.SplitSeq(text, ",") {
		prefix, open := strings.CutSuffix(name, "*")
		if n++; n > maxFilterNames || name == "" || len(name) > maxFilterName || !plainName(prefix) {
			return Filter{}, bad
		}
		if open {
			f.prefixes = append(f.prefixes, prefix)
		} else {
			f.exact[Type(name)] = true
		}
	}
	return f, nil
}

func plainName(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// Admits reports whether events of a type are selected.
func (f Filter) Admits(t Type) bool {
	if f.OpenwopOnly {
		if e, _ := Lookup(t); e.Vocabulary != Openwop {
			return false
		}
	}
	if f.exact == nil || f.exact[t] {
		return true
	}
	return slices.ContainsFunc(f.prefixes, func(p string) bool { return strings.HasPrefix(string(t), p) })
}

// Modes is a set of stream modes.
type Modes uint8

const (
	Updates  Modes = 1 << 0
	Values   Modes = 1 << 1
	Messages Modes = 1 << 2
	Debug    Modes = 1 << 3
)

var modeNames = []string{"updates", "values", "messages", "debug"}

// ModeNames returns the names of the single modes, for details.supported.
func ModeNames() []string { return append([]string(nil), modeNames...) }

// Has reports whether all of m2 is in the set.
func (m Modes) Has(m2 Modes) bool { return m&m2 == m2 }

// A ModeError means that a stream mode is not supported: unsupported_stream_mode with Supported in
// its details. It does not quote the input.
type ModeError struct{ Supported []string }

func (e *ModeError) Error() string {
	return "stream modes are " + strings.Join(e.Supported, ", ") + ", and values stands alone"
}

// ParseModes parses a streamMode parameter that is present; without one a request means Updates. An
// empty text is an unknown name. The error is a *ModeError.
func ParseModes(text string) (Modes, error) {
	var m Modes
	for name := range strings.SplitSeq(text, ",") {
		one := modeNamed(name)
		if one == 0 {
			return 0, &ModeError{ModeNames()}
		}
		m |= one
	}
	if m.Has(Values) && m != Values {
		return 0, &ModeError{ModeNames()}
	}
	return m, nil
}

func modeNamed(name string) Modes {
	for i, n := range modeNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// A ParameterError reports a malformed query parameter: validation_error. Rule is for people and
// does not quote the input.
type ParameterError struct{ Name, Rule string }

func (e *ParameterError) Error() string { return fmt.Sprintf("%s must be %s", e.Name, e.Rule) }
