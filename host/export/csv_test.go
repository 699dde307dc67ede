package export

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// What could be a formula gets a leading '; numbers stay numbers.
func TestCells(t *testing.T) {
	for in, want := range map[string]string{
		`"plain"`: "plain", `"=1+1"`: "'=1+1", `"+1"`: "'+1", `"-1"`: "'-1", `"@x"`: "'@x", `"\tx"`: "' x", `"\rx"`: "' x",
		`"\u200b=1"`: "'=1", `"a=b"`: "a=b", `""`: "", `null`: "", `-1`: "-1", `1e3`: "1e3", `true`: "true",
		`{"a": 1}`: `{"a": 1}`, `["=x"]`: `["=x"]`, `"a\u001b[31mb"`: "a[31mb", `"two\nlines"`: "two\nlines",
	} {
		v, err := strictjson.Parse([]byte(in), strictjson.ParseOptions{AnyKind: true})
		if err != nil {
			t.Fatal(err)
		}
		cells, err := csv.NewReader(bytes.NewReader(append(appendValue(nil, v), ",\n"...))).Read()
		if err != nil {
			t.Fatal(err)
		}
		if got := cells[0]; got != want {
			t.Errorf("%s became %q, want %q", in, got, want)
		}
	}
}

func FuzzCell(f *testing.F) {
	for _, s := range []string{"=1", "\t=1", "\u200b@", "a", "\x1b[31m", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Cell(s)
		if got != "" && strings.ContainsRune("=+-@\t\r", rune(got[0])) {
			t.Errorf("%q became the formula %q", s, got)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 }) {
			t.Errorf("%q kept a control character: %q", s, got)
		}
	})
}
