package abi_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
)

// A file goes through its text unchanged; what is none is refused, and a name is never
// a path.
func TestAnswerFile(t *testing.T) {
	for _, f := range []abi.AnswerFile{{}, {Name: "a b;c,d%.csv", Media: "text/csv", Data: []byte("1,2\n\x00")},
		{Data: make([]byte, abi.MaxAnswerFile)}} {
		got, err := abi.ParseAnswerFile(f.String())
		if err != nil || got.Name != f.Name || got.Media != f.Media || !bytes.Equal(got.Data, f.Data) {
			t.Errorf("%.40s: %q %q %d %v", f.String(), got.Name, got.Media, len(got.Data), err)
		}
	}
	for text, name := range map[string]string{"data:;name=..%2F..%2Fetc%2Fpasswd;base64,": "passwd",
		`data:;name=C%3A%5Cx.txt;base64,`: "x.txt", "data:;name=a%0Ab;base64,": abi.Clean("a\nb"), "data:;name=;base64,": "",
		"data:;name=..;base64,": "", "data:;name=%2F;base64,": "", "data:;name=a%2F..;base64,": "",
		"data:;name=.;base64,": ""} {
		if f, err := abi.ParseAnswerFile(text); err != nil || f.Name != name {
			t.Errorf("%s: %q %v", text, f.Name, err)
		}
	}
	for _, bad := range []string{"", "hello", "data:,hello", "data:;base64", "data:;base64,!", "data:;name=%zz;base64,",
		"http:;base64,", "data:" + strings.Repeat("x", 2000) + ";base64,",
		abi.AnswerFile{Data: make([]byte, abi.MaxAnswerFile+1)}.String()} {
		if _, err := abi.ParseAnswerFile(bad); err == nil {
			t.Errorf("%.40q is a file", bad)
		}
	}
}
