//go:build unix

package postgres

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStall: a write that nobody takes ends.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		began := time.Now()
		if _, err := (&watched{ours}).Write([]byte("x")); err == nil || time.Since(began) != stall {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// FuzzStorable: JSON stays JSON, without NUL, and what is storable stays as it is.
func FuzzStorable(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `"\u0000"`, `"\\u0000"`, `"\\\u0000\"\u0000"`, `[1e9999,-1E+1001,1e-1000,0.5]`,
		`{"\u0000":"1e9999"}`, `[-0.0e00001001]`, strings.Repeat("1", 1001)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if !json.Valid([]byte(in)) {
			return
		}
		out := storable(in)
		if !json.Valid([]byte(out)) || storable(out) != out {
			t.Fatalf("%q becomes %q", in, out)
		}
		var text any
		if json.Unmarshal([]byte(out), &text) == nil {
			again, err := json.Marshal(text)
			if err != nil || strings.Contains(strings.ReplaceAll(string(again), `\\`, ""), `\u0000`) {
				t.Fatalf("%q has NUL: %s %v", in, again, err)
			}
		}
	})
}
