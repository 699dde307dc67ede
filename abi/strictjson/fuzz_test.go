package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// wantFault judges src with encoding/json, utf8 and the naive reading of each
// rule, and shares no code with the scanner. values is how many src holds.
func wantFault(src []byte) (fault string, values int) {
	if !utf8.Valid(src) {
		return "utf8", 0
	}
	if !json.Valid(src) || badEscapes(src) {
		return "json", 0
	}
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	type level struct {
		names  map[string]bool // nil in an array
		isName bool
	}
	var stack []level
	deepest := 0
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		switch token {
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
			continue
		}
		if n := len(stack) - 1; n >= 0 && stack[n].names != nil {
			if stack[n].isName = !stack[n].isName; stack[n].isName {
				name := token.(string)
				if stack[n].names[name] {
					return "json", 0
				}
				stack[n].names[name] = true
				continue
			}
		}
		values++
		switch token {
		case json.Delim('{'):
			stack = append(stack, level{names: map[string]bool{}})
		case json.Delim('['):
			stack = append(stack, level{})
		}
		deepest = max(deepest, len(stack))
	}
	switch {
	case deepest > 64:
		return "depth", values
	case bytes.TrimLeft(src, " \t\r\n")[0] != '{':
		return "not_object", values
	default:
		return "none", values
	}
}

// badEscapes reports whether the valid JSON text src spells NUL or half a
// surrogate pair in an escape.
func badEscapes(src []byte) bool {
	var units []uint16
	flush := func() bool {
		again := utf16.Encode(utf16.Decode(units))
		bad := !cmp.Equal(again, units) && len(units) > 0
		units = units[:0]
		return bad
	}
	for i := 0; i < len(src); i++ {
		if src[i] != '\\' || src[i+1] != 'u' {
			if flush() {
				return true
			}
			if src[i] == '\\' {
				i++
			}
			continue
		}
		n, ok := new(big.Int).SetString(string(src[i+2:i+6]), 16)
		if !ok || n.Sign() == 0 {
			return true
		}
		units = append(units, uint16(n.Uint64()))
		i += 5
	}
	return flush()
}

// FuzzObject compares the scanner with wantFault, and what it finds with what
// encoding/json decodes.
func FuzzObject(f *testing.F) {
	for _, v := range vectors[jsonVector](f, "json.json") {
		f.Add(v.bytes(f))
	}
	f.Add(record200)
	var s strictjson.Scanner
	f.Fuzz(func(t *testing.T, src []byte) {
		if bytes.Count(src, []byte("["))+bytes.Count(src, []byte("{")) > 9_000 {
			return // encoding/json stops at a depth of 10,000
		}
		want, values := wantFault(src)
		s.MaxValues = 0
		before := bytes.Clone(src)
		members, err := s.Object(src)
		if got := faultName(t, err, len(src)); got != want {
			t.Fatalf("fault %s (%v), want %s", got, err, want)
		}
		if want == "none" {
			checkMembers(t, src, members)
			s.MaxValues = values
			if _, err := s.Object(src); err != nil {
				t.Errorf("%d values refused: %v", values, err)
			}
			if s.MaxValues--; s.MaxValues > 0 {
				members, err := s.Object(src)
				if got := faultName(t, err, len(src)); got != "values" {
					t.Errorf("one value too many: fault %s", got)
				}
				checkMembers(t, src, members)
			}
		}
		if !bytes.Equal(src, before) {
			t.Error("the scanner changed its input")
		}
	})
}

func faultName(t *testing.T, err error, length int) string {
	t.Helper()
	if err == nil {
		return "none"
	}
	var syntax *strictjson.SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("error of type %T", err)
	}
	if syntax.Offset < 0 || syntax.Offset > length {
		t.Errorf("offset %d outside of %d bytes", syntax.Offset, length)
	}
	return syntax.Fault.String()
}

// checkMembers compares members with a map decoded by encoding/json.
func checkMembers(t *testing.T, src []byte, members []strictjson.Member) {
	t.Helper()
	var want map[string]json.RawMessage
	if err := json.Unmarshal(src, &want); err != nil {
		t.Fatalf("encoding/json refuses: %v", err)
	}
	got := map[string]json.RawMessage{}
	for _, m := range members {
		got[string(m.Name)] = json.RawMessage(m.Value)
		if m.Kind != kindByDecoding(t, m.Value) {
			t.Errorf("%s is called %s", m.Value, m.Kind)
		}
	}
	if len(members) != len(want) || !cmp.Equal(want, got) {
		t.Errorf("members (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func kindByDecoding(t *testing.T, raw []byte) strictjson.Kind {
	t.Helper()
	switch decode(t, raw).(type) {
	case nil:
		return strictjson.KindNull
	case bool:
		return strictjson.KindBool
	case json.Number:
		return strictjson.KindNumber
	case string:
		return strictjson.KindString
	case []any:
		return strictjson.KindArray
	default:
		return strictjson.KindObject
	}
}

// decode decodes a valid text with encoding/json, numbers as spelled.
func decode(t *testing.T, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", raw, err)
	}
	return v
}

// FuzzValue writes a text again from its tree and compares what both decode
// to; AppendCompact must agree with encoding/json.Compact.
func FuzzValue(f *testing.F) {
	for _, v := range vectors[jsonVector](f, "json.json") {
		if v.Fault == "none" || v.Fault == "not_object" {
			f.Add(v.bytes(f))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		v, err := strictjson.Parse(src, strictjson.ParseOptions{AnyKind: true})
		if err != nil {
			return
		}
		again := rewrite(t, nil, v)
		if _, err := strictjson.Parse(again, strictjson.ParseOptions{AnyKind: true}); err != nil {
			t.Fatalf("%s is refused: %v", again, err)
		}
		if !reflect.DeepEqual(decode(t, src), decode(t, again)) {
			t.Errorf("written again: %s", again)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, src); err != nil {
			t.Fatal(err)
		}
		if got := strictjson.AppendCompact(nil, src); !bytes.Equal(got, compact.Bytes()) {
			t.Errorf("compact %s, want %s", got, compact.Bytes())
		}
	})
}

// rewrite appends v, read only through the methods of Value.
func rewrite(t *testing.T, dst []byte, v strictjson.Value) []byte {
	n := 0
	comma := func() {
		if n++; n > 1 {
			dst = append(dst, ',')
		}
	}
	switch v.Kind {
	case strictjson.KindObject:
		dst = append(dst, '{')
		for name, member := range v.Members() {
			comma()
			dst = append(strictjson.AppendQuote(dst, name), ':')
			dst = rewrite(t, dst, member)
			if found, ok := v.Member(name); !ok || !bytes.Equal(found.Raw, member.Raw) {
				t.Errorf("member %q: %s, %v", name, found.Raw, ok)
			}
		}
		dst = append(dst, '}')
	case strictjson.KindArray:
		dst = append(dst, '[')
		for item := range v.Items() {
			comma()
			dst = rewrite(t, dst, item)
		}
		dst = append(dst, ']')
	case strictjson.KindString:
		text, ok := v.Text()
		if !ok || !v.Equal(text) || v.Equal(text+"x") || text != "" && v.Equal(text[1:]) {
			t.Errorf("%s is compared wrongly with its text %q", v.Raw, text)
		}
		return strictjson.AppendQuote(dst, text)
	default:
		return append(dst, v.Raw...)
	}
	if n != v.Len() {
		t.Errorf("%d members or items, Len says %d", n, v.Len())
	}
	return dst
}

// FuzzQuote reads back what AppendQuote wrote.
func FuzzQuote(f *testing.F) {
	for _, v := range vectors[struct{ Text, Literal string }](f, "quotes.json") {
		f.Add(v.Text)
	}
	f.Add("\xff\xc3(\xed\xa0\x80")
	f.Add("seven\\\xc3\xa9 and more than eight bytes")
	var s strictjson.Scanner
	f.Fuzz(func(t *testing.T, text string) {
		var want strings.Builder
		for _, r := range text {
			if r == 0 {
				r = utf8.RuneError
			}
			want.WriteRune(r)
		}
		literal := strictjson.AppendQuote(nil, text)
		if kind, err := s.Valid(literal); err != nil || kind != strictjson.KindString {
			t.Fatalf("%s: %s, %v", literal, kind, err)
		}
		if got := strictjson.String(literal); got != want.String() {
			t.Errorf("%q came back as %q", text, got)
		}
		if decode(t, literal) != want.String() {
			t.Errorf("encoding/json reads %s otherwise", literal)
		}
		if other := strictjson.AppendQuote(nil, []byte(text)); !bytes.Equal(other, literal) {
			t.Errorf("bytes are spelled %s, text %s", other, literal)
		}
		// A key of one part is the same literal, however it was spelled.
		if text != "" {
			key, parts, ok := abi.CanonicalKey(nil, []byte("["+escapeAll(want.String())+"]"))
			if !ok || parts != 1 || string(key) != "["+string(literal)+"]" {
				t.Errorf("key %s, %d, %v; want [%s]", key, parts, ok, literal)
			}
		}
	})
}

// escapeAll spells every character of text as an escape.
func escapeAll(text string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(text)) {
		b.WriteString(`\u`)
		hex := big.NewInt(int64(u)).Text(16)
		b.WriteString(strings.Repeat("0", 4-len(hex)) + hex)
	}
	return `"` + b.String() + `"`
}

// FuzzNumber compares Int64 with exact fractions.
func FuzzNumber(f *testing.F) {
	for _, v := range vectors[struct {
		Raw   string
		Int64 *string
	}](f, "numbers.json") {
		f.Add(v.Raw)
	}
	var s strictjson.Scanner
	f.Fuzz(func(t *testing.T, raw string) {
		n, ok := strictjson.Int64([]byte(raw)) // never panics, whatever it is given
		if kind, err := s.Valid([]byte(raw)); err != nil || kind != strictjson.KindNumber || strings.TrimSpace(raw) != raw {
			return
		}
		if _, exp, _ := strings.Cut(strings.ToLower(raw), "e"); len(exp) > 4 {
			return // big.Rat would need too long
		}
		want, valid := new(big.Rat).SetString(raw)
		if !valid {
			t.Fatalf("big.Rat refuses %s", raw)
		}
		if isInt := want.IsInt() && want.Num().IsInt64(); ok != isInt || ok && n != want.Num().Int64() {
			t.Errorf("%s: %d, %v; want %s", raw, n, ok, want.RatString())
		}
	})
}

// TestStoredInputs makes sure that the inputs beside the vectors are there for
// every fuzz target of this file.
func TestStoredInputs(t *testing.T) {
	for _, target := range []string{"FuzzObject", "FuzzValue", "FuzzQuote", "FuzzNumber"} {
		if files, err := filepath.Glob(filepath.Join("testdata", "fuzz", target, "*")); err != nil || len(files) == 0 {
			t.Errorf("%s has no stored inputs: %v", target, err)
		}
	}
}
