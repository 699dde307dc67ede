package abi_test

import (
	"testing"

	"github.com/sluicehost/sluice/abi"
)

// JSON is clean in its strings and names, however they are written, and the rest
// of it is as it was.
func TestCleanJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":["x",1.50,null,true]}`:                          `{"a":["x",1.50,null,true]}`,
		`{"b":"x\u001b[31m\u202ey","a":12345678901234567890}`: `{"a":12345678901234567890,"b":"x[31my"}`,
		"{\"a\u200b\":[{\"b\":\"\u202ex\"}]}":                 `{"a":[{"b":"x"}]}`,
		`"one\r\ntwo\tthree"`:                                 `"one  two three"`,
	} {
		got, err := abi.CleanJSON([]byte(text))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	if got, err := abi.CleanJSON([]byte(`{"a":"\`)); err == nil {
		t.Errorf("no JSON: %s", got)
	}
}
