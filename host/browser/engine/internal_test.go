package engine

import "testing"

func TestFormatted(t *testing.T) {
	for _, c := range []struct {
		typed, have string
		same        bool
	}{
		{" foo ", "foo", true}, {"A@B.test", "a@b.test", false}, {"de89", "DE89", false},
		{"1234.5", "1,234.50", true}, {"1234", "1,234", true}, {"030", "30", true},
		{"4930123456", "+49 (30) 123-456", true}, {"15012024", "15.01.2024", true},
		{"1234123412341234", "1234 1234 1234 1234", true}, {"1.5", "15", false}, {"1234", "12.34", false},
		{"1234", "12,34", false}, {"5", "-5", false}, {"-5", "5", false}, {"30", "25", false}, {"foo", "", false},
		{"", "foo", false}, {"foo", "foobar", false}, {"foobar", "foo", false}, {"a-b", "ab", false},
		{"12", "\u221212 EUR", false},
	} {
		if got := formatted(c.typed, c.have); got != c.same {
			t.Errorf("%q shown as %q: %v", c.typed, c.have, got)
		}
	}
}
