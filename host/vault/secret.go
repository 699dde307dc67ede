package vault

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// A Secret holds a value so that no printer, encoder or logger shows it (S90).
// Copies share the value: Wipe on one clears all. Use and Wipe are not to be
// called at the same time. The zero Secret holds nothing.
type Secret struct {
	// A function, because printers follow the pointers and slices in unexported
	// fields without asking any method, and stop at a function.
	value func() *[]byte
}

// newSecret owns the slice from here on.
func newSecret(value []byte) Secret { return Secret{func() *[]byte { return &value }} }

// Use calls f with the value, which f must neither change nor keep.
func (s Secret) Use(f func([]byte)) {
	if s.value == nil {
		f(nil)
		return
	}
	v := *s.value()
	f(v[:len(v):len(v)])
}

// Wipe clears the value; Use gives nothing from then on.
func (s Secret) Wipe() {
	if s.value == nil {
		return
	}
	v := s.value()
	clear(*v)
	*v = nil
}

func (Secret) String() string               { return redacted }
func (Secret) GoString() string             { return redacted }
func (Secret) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, redacted) }
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
func (Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }

var (
	_ fmt.Formatter  = Secret{}
	_ slog.LogValuer = Secret{}
)
