package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	in := `{"Action":"output","Package":"p","Test":"A","Output":"    a_test.go:3: SKIPPED: no chromium\n"}
{"Action":"skip","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"B","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"B"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`
	var out strings.Builder
	ok, err := report(strings.NewReader(in), &out)
	if want := "ok  \tp\t0.1s\n\nSkipped:\n  no chromium: p A\n"; !ok || err != nil || out.String() != want {
		t.Errorf("%t, %v, %q; want %q", ok, err, out.String(), want)
	}
	out.Reset()
	in += `{"Action":"output","Package":"q","Test":"C","Output":"wrong\n"}
{"Action":"fail","Package":"q","Test":"C"}
{"Action":"output","Package":"q","Test":"D","Output":"panic\n"}
{"Action":"output","Package":"q","Output":"FAIL\tq\n"}
{"Action":"fail","Package":"q"}
`
	if ok, err := report(strings.NewReader(in), &out); ok || err != nil ||
		!strings.Contains(out.String(), "wrong\nFAIL\tq\npanic\n") {
		t.Errorf("%t, %v, %q", ok, err, out.String())
	}
	if ok, _ := report(strings.NewReader(""), &out); ok {
		t.Error("no package is a success")
	}
}
