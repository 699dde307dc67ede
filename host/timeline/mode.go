package timeline

import (
	"fmt"
	"strings"
)

// Modes is a set of stream modes.
type Modes uint8

const (
	Updates  Modes = 1 << 0
	Values   Modes = 1 << 1
	Messages Modes = 1 << 2
	Debug    Modes = 1 << 3
)

var modeNames = []string{"updates", "values", "messages", "debug"}

// ModeNames are the names of the single modes, for details.supported.
func ModeNames() []string { return append([]string(nil), modeNames...) }

// Has reports whether all of m2 is in the set.
func (m Modes) Has(m2 Modes) bool { return m&m2 == m2 }

// A ModeError says that a stream mode is not supported: the answer is
// unsupported_stream_mode with Supported in its details. It quotes nothing.
type ModeError struct{ Supported []string }

func (e *ModeError) Error() string {
	return "stream modes are " + strings.Join(e.Supported, ", ") + ", and values stands alone"
}

// ParseModes reads a streamMode parameter that is present; a request without
// one means Updates. An empty text is an empty name, which is an error like any
// unknown one: *ModeError.
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

// A ParameterError says that a query parameter is malformed: validation_error.
// Rule is for people and quotes nothing that was sent.
type ParameterError struct{ Name, Rule string }

func (e *ParameterError) Error() string { return fmt.Sprintf("%s must be %s", e.Name, e.Rule) }
