package destination_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/destination"
)

// TestFlatten: members of objects get columns of their own, which are never those of another field.
func TestFlatten(t *testing.T) {
	s := &destination.Shape{Flatten: true}
	for _, c := range []struct{ data, want string }{
		{`{"a":{"b":1,"c":{"d":2}},"a_b":3}`, `a_b=1 a_c={"d":2} a_b_2=3`},
		{`{"a":7,"a.b":8}`, `a=7 a.b=8`},
		{`{"a":{"":1,"b":2}}`, `a={"":1,"b":2}`},
		{`{"":{"b":1}}`, `_b=1`},
		{`{"":{"":1}}`, `_={"":1}`},
		{`{"a":[{"b":1}],"A":{"B":5}}`, `a=[{"b":1}] A_B_3=5`},
	} {
		values, rest := s.Row([]byte(c.data), nil)
		var got []string
		for i, v := range values {
			if v.Type != "" {
				got = append(got, s.Columns[i].Name+"="+v.Text)
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" || rest != "" {
			t.Errorf("%s: %s%s", c.data, diff, rest)
		}
	}
}
