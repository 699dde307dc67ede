package strictjson_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi/strictjson"
)

const sampleObject = ` { "text" : "a\u00e9\n" , "n":-12.50e1,"big":9007199254740993, "yes":true, "no" :false , "none":null,
	"list" : [ 1 , "2" , [ ] , {"a":3} ] , "empty":{ }, "\u0065sc":"\ud83d\ude00" } `

func parseSample(t *testing.T) strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse([]byte(sampleObject), strictjson.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestValueMembersKeepOrderAndSpelling(t *testing.T) {
	var got []string
	for name, v := range parseSample(t).Members() {
		got = append(got, name+" "+v.Kind.String()+" "+string(v.Raw))
	}
	want := []string{`text string "a\u00e9\n"`, `n number -12.50e1`, `big number 9007199254740993`,
		`yes bool true`, `no bool false`,
		`none null null`, `list array [ 1 , "2" , [ ] , {"a":3} ]`, `empty object { }`, `esc string "\ud83d\ude00"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValueRawIsPartOfTheInput(t *testing.T) {
	src := []byte(`{"a":["x"]}`)
	v, err := strictjson.Parse(src, strictjson.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := v.Member("a")
	if &a.Raw[0] != &src[5] || cap(a.Raw) != len(a.Raw) {
		t.Errorf("%q, capacity %d, does not lie in its place", a.Raw, cap(a.Raw))
	}
}

func TestValueAccessorsRefuseOtherKinds(t *testing.T) {
	accessors := map[string]func(strictjson.Value) bool{
		"text": func(v strictjson.Value) bool { _, ok := v.Text(); return ok },
		"bool": func(v strictjson.Value) bool { _, ok := v.Bool(); return ok },
		"int":  func(v strictjson.Value) bool { _, ok := v.Int64(); return ok },
		"safe": func(v strictjson.Value) bool { _, ok := v.SafeInteger(); return ok },
		"num":  func(v strictjson.Value) bool { _, ok := v.Float64(); return ok },
		"none": strictjson.Value.Absent,
		"many": func(v strictjson.Value) bool { return v.Len() > 0 },
	}
	v := parseSample(t)
	for member, want := range map[string][]string{
		"text": {"text"}, "n": {"int", "num", "safe"}, "big": {"int", "num"}, "yes": {"bool"},
		"no": {"bool"}, "none": {"none"}, "list": {"many"}, "empty": nil, "esc": {"text"}, "missing": {"none"},
	} {
		var got []string
		m, _ := v.Member(member)
		for name, accept := range accessors {
			if accept(m) {
				got = append(got, name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s answers to %v, want %v", member, got, want)
		}
	}
}

func TestValueReads(t *testing.T) {
	v := parseSample(t)
	member := func(name string) strictjson.Value { m, _ := v.Member(name); return m }
	if text, _ := member("text").Text(); text != "aé\n" || !member("text").Equal("aé\n") || member("text").Equal("aé") {
		t.Errorf("text %q", text)
	}
	if n, _ := member("n").Int64(); n != -125 {
		t.Errorf("n %d", n)
	}
	if n, _ := member("n").Float64(); n != -125 {
		t.Errorf("n %v", n)
	}
	if n, _ := member("big").Int64(); n != 9007199254740993 {
		t.Errorf("big %d: digits are lost", n)
	}
	if yes, _ := member("yes").Bool(); !yes {
		t.Error("yes is false")
	}
	if no, _ := member("no").Bool(); no {
		t.Error("no is true")
	}
	if text, _ := member("esc").Text(); text != "😀" {
		t.Errorf("esc %q", text)
	}
	if !v.Is(strictjson.KindObject) || v.Len() != 9 || member("list").Len() != 4 {
		t.Errorf("%s of %d, list of %d", v.Kind, v.Len(), member("list").Len())
	}
}

func TestValueIterationStops(t *testing.T) {
	v := parseSample(t)
	n := 0
	for range v.Members() {
		if n++; n == 2 {
			break
		}
	}
	list, _ := v.Member("list")
	for range list.Items() {
		if n++; n == 4 {
			break
		}
	}
	if n != 4 {
		t.Errorf("visited %d", n)
	}
}

func TestParseOptions(t *testing.T) {
	var syntax *strictjson.SyntaxError
	if _, err := strictjson.Parse([]byte(` [1]`), strictjson.ParseOptions{}); !errors.As(err, &syntax) ||
		syntax.Fault != strictjson.FaultNotObject || syntax.Offset != 1 {
		t.Errorf("array: %v", err)
	}
	v, err := strictjson.Parse([]byte(` [1] `), strictjson.ParseOptions{AnyKind: true, MaxValues: 2})
	if err != nil || string(v.Raw) != "[1]" {
		t.Errorf("array of any kind: %q, %v", v.Raw, err)
	}
	if _, err := strictjson.Parse([]byte(`[1,2]`), strictjson.ParseOptions{AnyKind: true, MaxValues: 2}); !errors.As(err,
		&syntax) || syntax.Fault != strictjson.FaultValues {
		t.Errorf("three values: %v", err)
	}
}

// TestZeroValues: what stands for a missing value answers, and does not panic.
func TestZeroValues(t *testing.T) {
	var v strictjson.Value
	if !v.Absent() || v.Len() != 0 || v.Equal("") || v.Kind.String() != "invalid" {
		t.Error("the zero Value is something")
	}
	if _, ok := v.Member("a"); ok {
		t.Error("the zero Value has a member")
	}
	if strictjson.String(nil) != "" || strictjson.EqualText(nil, "a") || len(strictjson.AppendCompact(nil, nil)) != 0 {
		t.Error("no text is something")
	}
}

func TestFloat64(t *testing.T) {
	for raw, want := range map[string]float64{"0": 0, "-1.5": -1.5, "1e308": 1e308, "5e-324": 5e-324, "1e-999": 0,
		"9007199254740993":               9007199254740992,
		"0." + strings.Repeat("3", 1000): 1.0 / 3} {
		if got, ok := strictjson.Float64([]byte(raw)); !ok || got != want {
			t.Errorf("%.20s: %v, %v", raw, got, ok)
		}
	}
	for _, raw := range []string{"1e309", "-1e999999", "", "Inf", "nan", `"1"`} {
		if got, ok := strictjson.Float64([]byte(raw)); ok || got != 0 || math.IsInf(got, 0) {
			t.Errorf("%s is the float %v", raw, got)
		}
	}
}

func TestHasType(t *testing.T) {
	types := []string{"string", "integer", "number", "boolean", "array", "object"}
	for raw, want := range map[string]string{`"a"`: "string", "1": "integer number", "5.0": "integer number",
		"1.5": "number", "9007199254740993": "number",
		"1e999": "", "true": "boolean", "[]": "array", "{}": "object", "null": ""} {
		v, err := strictjson.Parse([]byte(raw), strictjson.ParseOptions{AnyKind: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range types {
			if v.HasType(name) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want || !v.HasType("") || !v.HasType("json") {
			t.Errorf("%s has the types %q, want %q", raw, got, want)
		}
	}
}
