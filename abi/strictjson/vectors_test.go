package strictjson_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// vectors reads one file of testdata. Its README.md describes the cases.
func vectors[T any](t testing.TB, file string) []T {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var cases []T
	if err := d.Decode(&cases); err != nil {
		t.Fatalf("decode %s: %v", file, err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s has no cases", file)
	}
	return cases
}

type jsonVector struct {
	Name      string
	Text      string
	Hex       string
	MaxValues int `json:"max_values"`
	Fault     string
	Offset    int
}

func (v jsonVector) bytes(t testing.TB) []byte {
	if v.Hex == "" {
		return []byte(v.Text)
	}
	b, err := hex.DecodeString(v.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestJSONVectors holds the scanner to the vectors. One scanner takes all
// texts, so that nothing of one text may show in the next.
func TestJSONVectors(t *testing.T) {
	var s strictjson.Scanner
	for _, v := range vectors[jsonVector](t, "json.json") {
		t.Run(v.Name, func(t *testing.T) {
			src := v.bytes(t)
			s.MaxValues = v.MaxValues
			_, err := s.Object(src)
			checkFault(t, err, v.Fault, v.Offset)
			if len(src) <= 1024 {
				// The same text in a buffer with other bytes after it.
				_, err = s.Object(append(bytes.Clone(src), "\"}]\xff"...)[:len(src)])
				checkFault(t, err, v.Fault, v.Offset)
			}
			_, err = strictjson.Parse(src, strictjson.ParseOptions{MaxValues: v.MaxValues})
			checkFault(t, err, v.Fault, v.Offset)
		})
	}
}

func checkFault(t *testing.T, err error, fault string, offset int) {
	t.Helper()
	if fault == "none" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	var syntax *strictjson.SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("error %v, want fault %s", err, fault)
	}
	if syntax.Fault.String() != fault || syntax.Offset != offset {
		t.Errorf("fault %s at %d (%s), want %s at %d", syntax.Fault, syntax.Offset, syntax.Reason, fault, offset)
	}
}

func TestQuoteVectors(t *testing.T) {
	for _, v := range vectors[struct{ Text, Literal string }](t, "quotes.json") {
		if got := strictjson.AppendQuote(nil, v.Text); string(got) != v.Literal {
			t.Errorf("%q: %s, want %s", v.Text, got, v.Literal)
		}
		if got := strictjson.AppendQuote(nil, []byte(v.Text)); string(got) != v.Literal {
			t.Errorf("bytes of %q: %s, want %s", v.Text, got, v.Literal)
		}
	}
}

func TestCompactVectors(t *testing.T) {
	for _, v := range vectors[struct{ Raw, Compact string }](t, "compact.json") {
		if got := strictjson.AppendCompact(nil, []byte(v.Raw)); string(got) != v.Compact {
			t.Errorf("%s: %s, want %s", v.Raw, got, v.Compact)
		}
	}
}

func TestNumberVectors(t *testing.T) {
	type vector struct {
		Raw   string
		Int64 *string
	}
	for _, v := range vectors[vector](t, "numbers.json") {
		n, ok := strictjson.Int64([]byte(v.Raw))
		checkInteger(t, v.Raw, n, ok, v.Int64)
		safe, isSafe := strictjson.SafeInteger([]byte(v.Raw))
		if isSafe != (ok && n <= 1<<53-1 && n >= -(1<<53-1)) || isSafe && safe != n {
			t.Errorf("%s: safe integer %d, %v", v.Raw, safe, isSafe)
		}
	}
}

func checkInteger(t *testing.T, what string, n int64, ok bool, want *string) {
	t.Helper()
	if ok != (want != nil) || ok && strconv.FormatInt(n, 10) != *want {
		if want == nil {
			t.Errorf("%s: %d, %v; want none", what, n, ok)
			return
		}
		t.Errorf("%s: %d, %v; want %s", what, n, ok, *want)
	}
}
