package cli

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// Secrets are typed into a raw terminal: its keys are read here.
func TestEditLine(t *testing.T) {
	for _, c := range []struct {
		keys, want string
		interrupts int
		err        error
	}{
		{keys: "1234\r", want: "1234"},
		{keys: "1234\nrest", want: "1234"},
		{keys: "äx\x7f\x7fb\b\b\bc\r", want: "c"},
		{keys: "wrong\x15right\r", want: "right"},
		{keys: "\x04", err: io.EOF},
		{keys: "a\x04b\r", want: "ab"},
		{keys: "a\x03b\r", want: "ab", interrupts: 1},
		{keys: "cut off", err: io.EOF},
	} {
		n := 0
		got, err := editLine(strings.NewReader(c.keys), func() { n++ })
		if got != c.want || n != c.interrupts || !errors.Is(err, c.err) {
			t.Errorf("%q: %q, %d interrupts, %v", c.keys, got, n, err)
		}
	}
	if _, err := editLine(strings.NewReader(strings.Repeat("x", 1<<16)), nil); err == nil {
		t.Error("a line without end was read")
	}
}
