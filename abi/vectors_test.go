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

// TestFrameVectors reads the frames and writes the good ones again.
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

// TestKeyVectors holds canonical keys to the contract.
func TestKeyVectors(t *testing.T) {
	type vector struct {
		Raw, Key string
		OK       bool
		Parts    int
	}
	var s strictjson.Scanner
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

// No text at all is no key and no time.
func TestNothingIsNoKeyAndNoTime(t *testing.T) {
	if _, _, ok := abi.CanonicalKey(nil, nil); ok {
		t.Error("no text is a key")
	}
	if _, ok := abi.TimeOf(nil); ok {
		t.Error("no text is a time")
	}
}

// TestTimeVectors holds readable times to the contract.
func TestTimeVectors(t *testing.T) {
	type vector struct {
		Raw    string
		Micros *string
	}
	for _, v := range vectors[vector](t, "times.json") {
		n, ok := abi.TimeOf([]byte(v.Raw))
		checkInteger(t, v.Raw, n, ok, v.Micros)
		if v.Raw[0] == '"' {
			n, ok = abi.ParseTime(strictjson.String([]byte(v.Raw)))
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

// TestStoredInputs makes sure that the inputs beside the vectors are there for
// every fuzz target of frames and times.
func TestStoredInputs(t *testing.T) {
	for _, target := range []string{"FuzzTime", "FuzzFrame", "FuzzFrameRecords"} {
		if files, err := filepath.Glob(filepath.Join("testdata", "fuzz", target, "*")); err != nil || len(files) == 0 {
			t.Errorf("%s has no stored inputs: %v", target, err)
		}
	}
	if _, err := os.Stat(filepath.Join("testdata", "README.md")); err != nil {
		t.Error(err)
	}
}
