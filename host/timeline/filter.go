package timeline

import "strings"

// A Filter selects event types. The zero Filter selects all of them.
type Filter struct {
	// OpenwopOnly leaves out what openwop does not know.
	OpenwopOnly bool
	exact       map[Type]bool
	prefixes    []string
}

// The bounds of a list of types.
const (
	maxFilterNames = 64
	maxFilterName  = 64
)

// ParseVocabulary reads a vocabulary parameter; "" is full. The error is a
// *ParameterError.
func ParseVocabulary(text string) (openwopOnly bool, err error) {
	switch text {
	case "", "full":
		return false, nil
	case "openwop":
		return true, nil
	}
	return false, &ParameterError{"vocabulary", "full or openwop"}
}

// ParseTypes reads a list of types: names with commas between them, a
// trailing * matches a prefix; "" is all. The error is a *ParameterError.
func ParseTypes(text string) (Filter, error) {
	var f Filter
	if text == "" {
		return f, nil
	}
	bad := &ParameterError{"types", "at most 64 event types with commas between them, each of at most 64 characters, * only at its end"}
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
	for _, p := range f.prefixes {
		if strings.HasPrefix(string(t), p) {
			return true
		}
	}
	return false
}
