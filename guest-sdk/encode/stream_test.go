package encode_test

import (
	"encoding/json"
	"testing"

	"github.com/sluicehost/sluice/guest-sdk/encode"
)

// TestProjection: what the scope does not grant is left out, in whatever order
// members come.
func TestProjection(t *testing.T) {
	s := encode.NewStream([]string{"a", "b"})
	for _, r := range [][2]string{
		{`{"a":1,"b":2}`, `{"a":1,"b":2}`}, {`{"a":1,"c":{"a":1},"b":2}`, `{"a":1,"b":2}`}, {`{"c":3,"a":1}`, `{"a":1}`},
		{`{"a":1,"b":2}`, `{"a":1,"b":2}`}, {`{"b":2,"a":1,"d":4}`, `{"b":2,"a":1}`}, {`{"c":3}`, `{}`}, {`{}`, `{}`},
		{`{"\u0061":1,"c":2}`, `{"a":1}`},
	} {
		got, err := s.Append([]byte("before"), json.RawMessage(r[0]))
		if err != nil || string(got) != "before"+r[1] {
			t.Errorf("%s: %s, %v; want %s", r[0], got, err, r[1])
		}
	}
}
