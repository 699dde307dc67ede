package app

import "testing"

// What counts as a lower version.
func TestCompareVersions(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"1.0.0", "1.0.0", 0}, {"1.2.0", "1.10.0", -1}, {"2.0", "1.9.9", 1}, {"1.0", "1.0.1", -1},
		{"01", "2", -1}, {"1.02", "1.2", 0}, {"1.0-rc", "1.0-rd", -1}, {"10", "9", 1},
	} {
		if got := compareVersions(c.a, c.b); got != c.want {
			t.Errorf("compareVersions(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := compareVersions(c.b, c.a); got != -c.want {
			t.Errorf("compareVersions(%q, %q) = %d, want %d", c.b, c.a, got, -c.want)
		}
	}
}

// Ids that can be mistaken for each other.
func TestSkeleton(t *testing.T) {
	for _, same := range [][2]string{{"git-log", "gitlog"}, {"Mail", "mail"}, {"paypal", "paypa1"}, {"сhat", "chat"},
		{"my_box", "my-box"}, {"modern", "modem"}} {
		if skeleton(same[0]) != skeleton(same[1]) {
			t.Errorf("%q and %q do not look alike", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{"git", "gist"}, {"mail", "main"}} {
		if skeleton(other[0]) == skeleton(other[1]) {
			t.Errorf("%q and %q look alike", other[0], other[1])
		}
	}
}
