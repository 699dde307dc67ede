package strictjson_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// manyNames is an object with n different names and one more at the end.
func manyNames(n int, last string) []byte {
	b := []byte{'{'}
	for i := range n {
		b = fmt.Appendf(b, `"name%07d":%d,`, i, i)
	}
	return fmt.Appendf(b, `%q:0}`, last)
}

// TestObjectWithManyNames finds a repeated name wherever its first use stands,
// on both sides of every size at which the bookkeeping changes.
func TestObjectWithManyNames(t *testing.T) {
	var s strictjson.Scanner
	for _, n := range []int{1, 2, 15, 16, 17, 18, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 100_000} {
		if members, err := s.Object(manyNames(n, "new")); err != nil || len(members) != n+1 {
			t.Fatalf("%d names: %d members, %v", n, len(members), err)
		}
		for _, first := range []int{0, n / 3, n / 2, n - 1} {
			src := manyNames(n, fmt.Sprintf("name%07d", first))
			_, err := s.Object(src)
			var syntax *strictjson.SyntaxError
			if !errors.As(err, &syntax) || syntax.Fault != strictjson.FaultJSON ||
				syntax.Offset != bytes.LastIndex(src, []byte(`"name`)) {
				t.Errorf("%d names, %d repeated: %v", n, first, err)
			}
		}
	}
}

// TestObjectsWithManyNamesNested keeps several large objects open at a time.
func TestObjectsWithManyNamesNested(t *testing.T) {
	var s strictjson.Scanner
	for _, n := range []int{10, 16, 17, 40, 200} {
		src := []byte("0")
		for range 5 {
			half := bytes.TrimSuffix(manyNames(n, "child"), []byte("0}"))
			src = fmt.Appendf(half, `%s,%s`, src, bytes.ReplaceAll(manyNames(n, "end")[1:], []byte("name"), []byte("more")))
		}
		if _, err := s.Object(src); err != nil {
			t.Errorf("%d names: %v", n, err)
		}
		for _, repeated := range []string{"name0000000", "child", "more0000003", "end"} {
			again := append(bytes.TrimSuffix(bytes.Clone(src), []byte("}")), `,"`+repeated+`":1}`...)
			var syntax *strictjson.SyntaxError
			if _, err := s.Object(again); !errors.As(err, &syntax) || syntax.Offset != len(src) {
				t.Errorf("%d names, %s repeated: %v", n, repeated, err)
			}
		}
	}
}

// TestObjectNamesThatLookAlike has names of one length whose ends are equal.
func TestObjectNamesThatLookAlike(t *testing.T) {
	var s strictjson.Scanner
	for length := 1; length < 40; length++ {
		var b strings.Builder
		for i := range length {
			name := []byte(strings.Repeat("x", length))
			name[i] = 'y'
			fmt.Fprintf(&b, `,"%s":0`, name)
		}
		src := "{" + b.String()[1:] + "}"
		if members, err := s.Object([]byte(src)); err != nil || len(members) != length {
			t.Errorf("length %d: %d members, %v", length, len(members), err)
		}
		if _, err := s.Object([]byte("{" + b.String()[1:] + b.String() + "}")); err == nil {
			t.Errorf("length %d: repeated names accepted", length)
		}
	}
}

// TestObjectReturnsMembersWithTooManyValues: checks that come before
// record_too_large still find their members.
func TestObjectReturnsMembersWithTooManyValues(t *testing.T) {
	s := strictjson.Scanner{MaxValues: 2}
	members, err := s.Object([]byte(`{"a":1,"b":[2],"c":"3"}`))
	var syntax *strictjson.SyntaxError
	if !errors.As(err, &syntax) || syntax.Fault != strictjson.FaultValues {
		t.Fatalf("error %v", err)
	}
	if len(members) != 3 || string(members[2].Name) != "c" || string(members[2].Value) != `"3"` ||
		members[2].Kind != strictjson.KindString {
		t.Errorf("members %q", members)
	}
}

// TestObjectMembersLieInTheInput: names and values are parts of the input,
// escaped names apart, and cannot be extended over what follows them.
func TestObjectMembersLieInTheInput(t *testing.T) {
	src := []byte(`{"a": 1 ,"\u0062":[2]}`)
	var s strictjson.Scanner
	m, err := s.Object(src)
	if err != nil || len(m) != 2 {
		t.Fatal(m, err)
	}
	if &m[0].Name[0] != &src[2] || &m[0].Value[0] != &src[6] || &m[1].Value[0] != &src[18] {
		t.Error("a member was copied")
	}
	if string(m[1].Name) != "b" || string(m[1].Value) != "[2]" || string(m[0].Value) != "1" {
		t.Errorf("members %q", m)
	}
	if item := m[1].Tree(); item.Len() != 1 {
		t.Errorf("tree of %s has %d items", item.Raw, item.Len())
	}
	for _, b := range [][]byte{m[0].Name, m[1].Name, m[0].Value, m[1].Value} {
		if cap(b) != len(b) {
			t.Errorf("%q has capacity %d", b, cap(b))
		}
	}
}

// TestScannerDoesNotAllocate once its scratch space has grown.
func TestScannerDoesNotAllocate(t *testing.T) {
	big := manyNames(500, "last")
	escaped := []byte(`{"\u0061":"\n","\u0062":{"\u0061":[1,2,{"x":null}]},"t":"2024-05-06T07:08:09.123Z","k":["a"," b"]}`)
	s := strictjson.Scanner{MaxValues: 10_000}
	var frame abi.FrameWriter
	rec := abi.FrameRecord{Key: []byte("k"), Data: record200}
	key := make([]byte, 0, 64)
	n := testing.AllocsPerRun(100, func() {
		for _, src := range [][]byte{record200, big, escaped} {
			if _, err := s.Object(src); err != nil {
				t.Fatal(err)
			}
		}
		m, _ := s.Object(escaped)
		if _, ok := abi.TimeOf(m[2].Value); !ok {
			t.Fatal("no time")
		}
		if _, _, ok := abi.CanonicalKey(key, m[3].Value); !ok {
			t.Fatal("no key")
		}
		if !strictjson.EqualText(m[0].Value, "\n") {
			t.Fatal("not equal")
		}
		frame.Begin()
		if err := frame.Append(&rec); err != nil {
			t.Fatal(err)
		}
		r, err := abi.NewFrameReader(frame.Finish())
		var out abi.FrameRecord
		if err != nil || !r.Next(&out) || r.Next(&out) || r.Err() != nil {
			t.Fatal("frame not read")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestScannerTakesDeepTexts: a text of nothing but open containers costs memory
// in proportion to its size, and is malformed rather than too deep.
func TestScannerTakesDeepTexts(t *testing.T) {
	const n = 1 << 20
	var s strictjson.Scanner
	var syntax *strictjson.SyntaxError
	if _, err := s.Valid(bytes.Repeat([]byte("["), n)); !errors.As(err, &syntax) || syntax.Fault != strictjson.FaultJSON ||
		syntax.Offset != n {
		t.Errorf("open arrays: %v", err)
	}
	if _, err := s.Valid(bytes.Repeat([]byte(`{"":`), n/4)); !errors.As(err, &syntax) ||
		syntax.Fault != strictjson.FaultJSON || syntax.Offset != n {
		t.Errorf("open objects: %v", err)
	}
	closed := append(bytes.Repeat([]byte("["), n/2), bytes.Repeat([]byte("]"), n/2)...)
	if _, err := s.Valid(closed); !errors.As(err, &syntax) || syntax.Fault != strictjson.FaultDepth ||
		syntax.Offset != 64 {
		t.Errorf("closed arrays: %v", err)
	}
	if _, err := s.Object(record200); err != nil {
		t.Errorf("after that: %v", err)
	}
}

func TestSyntaxErrorQuotesNothing(t *testing.T) {
	var s strictjson.Scanner
	_, err := s.Object([]byte(`{"secret":"hunter2","secret":"hunter2"}`))
	if got := err.Error(); got != "invalid JSON at byte 20: repeated member name" {
		t.Errorf("error %q", got)
	}
}

func TestEqualText(t *testing.T) {
	for _, c := range []struct {
		raw, text string
		want      bool
	}{
		{`""`, "", true}, {`""`, "a", false}, {`"a"`, "", false}, {`"abc"`, "abc", true}, {`"abc"`, "abd", false},
		{`"\u0061bc"`, "abc", true}, {`"ab\u0063"`, "abc", true}, {`"ab\u0063"`, "ab", false}, {`"ab\u0063"`, "abcd", false},
		{`"a\u0000"`, "a", false}, {`"\ud83d\ude00"`, "😀", true}, {`"\ud83d\ude00"`, "😁", false},
		{`"\ufffd"`, "\xff", false}, {`"\ufffd"`, "\ufffd", true},
		{`"0123456789\n0123456789"`, "0123456789\n0123456789", true},
		{`"0123456789\n0123456789"`, "0123456789\n012345678X", false}, {`"é\n"`, "é\n", true}, {`"\\\""`, `\"`, true},
	} {
		if got := strictjson.EqualText([]byte(c.raw), c.text); got != c.want {
			t.Errorf("%s and %q: %v", c.raw, c.text, got)
		}
	}
}

// TestStringsByteByByte puts every byte at every place of a string and of a
// word: what must not stand there is found, and where.
func TestStringsByteByByte(t *testing.T) {
	const text = "0123456789ABCDEFGHIJ"
	var s strictjson.Scanner
	for at := range text {
		for c := range 256 {
			src := []byte(`"` + text + `"`)
			src[1+at] = byte(c)
			_, err := s.Valid(src)
			var syntax *strictjson.SyntaxError
			switch {
			case c == '"':
				if !errors.As(err, &syntax) || syntax.Offset != at+2 {
					t.Fatalf("quote at %d: %v", at, err)
				}
			case c < ' ', c >= 0x80:
				if !errors.As(err, &syntax) || syntax.Offset != at+1 || (syntax.Fault == strictjson.FaultUTF8) != (c >= 0x80) {
					t.Fatalf("byte %#02x at %d: %v", c, at, err)
				}
			case c == '\\':
				// The next byte is no escape, or is the quote, which then is part of the string.
				if !errors.As(err, &syntax) || syntax.Offset != at+1 && syntax.Offset != len(src) {
					t.Fatalf("backslash at %d: %v", at, err)
				}
			case err != nil:
				t.Fatalf("byte %#02x at %d: %v", c, at, err)
			}
		}
	}
}
