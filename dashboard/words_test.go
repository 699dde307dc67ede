package dashboard

import (
	"testing"
	"time"
)

// What is shortened says so, and a key keeps the end in which it differs from its neighbours.
func TestShortened(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{cut(8, "as it is"), "as it is"},
		{cut(4, "as it was"), "as i…"},
		{cut(3, "grün"), "grü…"}, {cut(4, "grün"), "grün"},
		{middle(9, "as it was"), "as it was"},
		{middle(8, "7d9e6f05546c:host/run.go"), "7d9e….go"},
		{middle(5, "äöüßéè"), "äö…éè"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// TestLasted: a span has two units at most, and none that is zero.
func TestLasted(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 1500 * time.Millisecond: "1.5 s", time.Minute: "1 min", 61 * time.Second: "1 min 01 s",
		10 * time.Minute: "10 min", time.Hour: "1 h", 90 * time.Minute: "1 h 30 min", 24 * time.Hour: "24 h",
	} {
		if got := lasted(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
