package dashboard

import "testing"

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
