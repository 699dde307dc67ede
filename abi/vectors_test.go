package abi_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
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

// TestJSONVectors holds the scanner to G8, R43 and S47. One scanner takes all
// texts, so that nothing of one text may show in the next.
func TestJSONVectors(t *testing.T) {
	var s abi.Scanner
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
			_, err = abi.Parse(src, abi.ParseOptions{MaxValues: v.MaxValues})
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
	var syntax *abi.SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("error %v, want fault %s", err, fault)
	}
	if syntax.Fault.String() != fault || syntax.Offset != offset {
		t.Errorf("fault %s at %d (%s), want %s at %d", syntax.Fault, syntax.Offset, syntax.Reason, fault, offset)
	}
}

type recordVector struct {
	Op        uint8
	KeyKind   uint8 `json:"key_kind"`
	Stream    uint16
	EmittedAt string `json:"emitted_at"`
	Key       string
	Data      string
}

type frameVector struct {
	Name    string
	Frame   string
	Records []recordVector
	Error   *struct {
		Fault  string
		Record int
		Offset int
	}
}

// TestFrameVectors reads the frames (G11) and writes the good ones again.
func TestFrameVectors(t *testing.T) {
	for _, v := range vectors[frameVector](t, "frames.json") {
		t.Run(v.Name, func(t *testing.T) {
			frame, err := hex.DecodeString(v.Frame)
			if err != nil {
				t.Fatal(err)
			}
			var w abi.FrameWriter
			w.Begin()
			got, err := readFrame(frame, func(rec *abi.FrameRecord) {
				if err := w.Append(rec); err != nil {
					t.Fatal(err)
				}
			})
			if diff := cmp.Diff(v.Records, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if v.Error == nil {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				if again := w.Finish(); !bytes.Equal(again, frame) {
					t.Errorf("written again: %x", again)
				}
				return
			}
			var f *abi.FrameError
			if !errors.As(err, &f) {
				t.Fatalf("error %v, want %+v", err, *v.Error)
			}
			if f.Fault.String() != v.Error.Fault || f.Record != v.Error.Record || f.Offset != v.Error.Offset {
				t.Errorf("%s of record %d at %d, want %+v", f.Fault, f.Record, f.Offset, *v.Error)
			}
		})
	}
}

// readFrame returns the records of a frame, and shows each to visit.
func readFrame(frame []byte, visit func(*abi.FrameRecord)) ([]recordVector, error) {
	records := []recordVector{}
	r, err := abi.NewFrameReader(frame)
	if err != nil {
		return records, err
	}
	var rec abi.FrameRecord
	for r.Next(&rec) {
		visit(&rec)
		records = append(records, recordVector{uint8(rec.Op), uint8(rec.KeyKind), rec.Stream,
			strconv.FormatInt(rec.EmittedAt, 10), string(rec.Key), string(rec.Data)})
	}
	return records, r.Err()
}

// TestKeyVectors holds canonical keys to R46.
func TestKeyVectors(t *testing.T) {
	type vector struct {
		Raw, Key string
		OK       bool
		Parts    int
	}
	var s abi.Scanner
	for _, v := range vectors[vector](t, "keys.json") {
		if _, err := s.Valid([]byte(v.Raw)); err != nil {
			t.Fatal(err)
		}
		key, parts, ok := abi.CanonicalKey([]byte("before"), []byte(v.Raw))
		if want := "before" + v.Key; string(key) != want || parts != v.Parts || ok != v.OK {
			t.Errorf("%s: %q, %d parts, %v; want %q, %d, %v", v.Raw, key, parts, ok, want, v.Parts, v.OK)
		}
	}
}

func TestQuoteVectors(t *testing.T) {
	for _, v := range vectors[struct{ Text, Literal string }](t, "quotes.json") {
		if got := abi.AppendQuote(nil, v.Text); string(got) != v.Literal {
			t.Errorf("%q: %s, want %s", v.Text, got, v.Literal)
		}
		if got := abi.AppendQuote(nil, []byte(v.Text)); string(got) != v.Literal {
			t.Errorf("bytes of %q: %s, want %s", v.Text, got, v.Literal)
		}
	}
}

func TestCompactVectors(t *testing.T) {
	for _, v := range vectors[struct{ Raw, Compact string }](t, "compact.json") {
		if got := abi.AppendCompact(nil, []byte(v.Raw)); string(got) != v.Compact {
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
		n, ok := abi.Int64([]byte(v.Raw))
		checkInteger(t, v.Raw, n, ok, v.Int64)
		safe, isSafe := abi.SafeInteger([]byte(v.Raw))
		if isSafe != (ok && n <= 1<<53-1 && n >= -(1<<53-1)) || isSafe && safe != n {
			t.Errorf("%s: safe integer %d, %v", v.Raw, safe, isSafe)
		}
	}
}

// TestTimeVectors holds readable times to R50.
func TestTimeVectors(t *testing.T) {
	type vector struct {
		Raw    string
		Micros *string
	}
	for _, v := range vectors[vector](t, "times.json") {
		n, ok := abi.TimeOf([]byte(v.Raw))
		checkInteger(t, v.Raw, n, ok, v.Micros)
		if v.Raw[0] == '"' {
			n, ok = abi.ParseTime(abi.String([]byte(v.Raw)))
			checkInteger(t, "text of "+v.Raw, n, ok, v.Micros)
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
