package vault

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// A Secret holds a value so that no printer, encoder or logger shows it. Copies share the value:
// Wipe on one clears all. Use and Wipe must not be called concurrently. The zero Secret is empty.
type Secret struct {
	// A function, because printers follow pointers and slices in unexported fields without calling
	// methods, and stop at functions.
	value func() *[]byte
}

// newSecret takes ownership of value.
func newSecret(value []byte) Secret { return Secret{func() *[]byte { return &value }} }

// Use calls f with the value, which f must not change or retain.
func (s Secret) Use(f func([]byte)) {
	if s.value == nil {
		f(nil)
		return
	}
	v := *s.value()
	f(v[:len(v):len(v)])
}

// Wipe clears the value. Afterwards Use passes an empty value.
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
