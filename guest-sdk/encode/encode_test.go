package encode_test

//lint:file-ignore SA5008 odd tags are what is compared

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/guest-sdk/encode"
)

// encoded is the JSON that the SDK makes of v.
func encoded(v any) (string, error) {
	b, err := encode.NewRecord("", nil).Any("v", v).MarshalJSON()
	if err != nil {
		return "", err
	}
	return string(b[len(`{"v":`) : len(b)-1]), nil
}

// wanted is what encoding/json makes of v, in the spelling of strictjson.AppendQuote:
// no escapes for HTML, and no NUL, which hosts refuse.
func wanted(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	s := strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029", `\ufffd`, "\ufffd", `\u0000`,
		"\ufffd").Replace(b.String())
	return strings.TrimSuffix(s, "\n"), nil
}

func compare(t *testing.T, v any) {
	t.Helper()
	got, err := encoded(v)
	want, wantErr := wanted(v)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%T: error %v, encoding/json %v", v, err, wantErr)
	}
	if diff := cmp.Diff(want, got); err == nil && diff != "" {
		t.Errorf("%T %+v:\n%s", v, v, diff)
	}
}

type (
	text   string
	number int
	// upper writes itself by its value, lower by its pointer.
	upper struct{ s string }
	lower struct{ s string }
	// zero says itself whether it is zero.
	zero  struct{ N int }
	Inner struct {
		A int `json:"a"`
		B int
	}
	Deep struct {
		Inner
		C int `json:"c"`
	}
	hidden struct{ H int }
	// Other has a member that Inner has too.
	Other struct {
		B int
		D int `json:"d,omitempty"`
	}
	Tree struct {
		Name     string           `json:"name"`
		Children []*Tree          `json:"children,omitempty"`
		By       map[string]*Tree `json:"by,omitempty"`
	}
	one struct{ P *int }
)

func (u upper) MarshalJSON() ([]byte, error)  { return []byte(` { "up" : "` + u.s + `" } `), nil }
func (l *lower) MarshalText() ([]byte, error) { return []byte("low " + l.s), nil }
func (z zero) IsZero() bool                   { return z.N == 42 }
func (n number) MarshalText() ([]byte, error) { return []byte{'n', '0' + byte(n)}, nil }
func (Inner) String() string                  { return "no part in JSON" }

// shapes are values of every kind of type.
func shapes() []any {
	n, s, nilInt := 7, "pointed", (*int)(nil)
	pp := &nilInt
	at := time.Date(2026, 3, 4, 5, 6, 7, 891_000_000, time.FixedZone("x", 3600))
	return []any{
		nil, true, false, "", "text", text("named"), number(3), 0, -1, 99, 100, 12345, math.MaxInt64, math.MinInt64,
		int8(-128), int16(-300), int32(1 << 30), uint8(255), uint16(65535), uint32(math.MaxUint32),
		uint64(math.MaxUint64), uintptr(5), 0.0, math.Copysign(0, -1), 1.5, 1e20, 1e21, 1e-6, 1e-7, -1e-9, math.MaxFloat64,
		math.SmallestNonzeroFloat64, float32(1.1), float32(1e21), float32(1e-7), math.NaN(), math.Inf(1), complex(1, 2),
		make(chan int), func() {}, &n, nilInt, &nilInt, &pp, &s, []int(nil), []int{}, []int{1, 2}, [3]int{1, 2, 3}, [0]int{},
		[1]*int{&n}, []byte(nil), []byte{}, []byte("bytes"), [4]byte{1, 2, 3, 4}, []string(nil), []string{},
		[]string{"a", "b"}, []text{"a"}, []number{1, 2}, []any{1, "a", nil, []any{}, map[string]any{}}, []any(nil),
		map[string]any(nil), map[string]any{"b": 1, "a": []string{"x"}, "c": nil}, map[string]int{"z": 1, "a": 2},
		map[text]bool{"t": true}, map[int]string{10: "ten", 9: "nine", -1: "minus"}, map[uint8]int{1: 1},
		map[number]int{2: 1, 1: 2}, map[float64]int{1: 1}, map[[2]int]int{{}: 1},
		map[netip.Addr]int{netip.MustParseAddr("::1"): 1}, at, &at, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Time{},
		time.Second, json.RawMessage(`{"a" : [1 , 2]}`), json.RawMessage(nil), json.RawMessage(`{`), json.Number("12.50"),
		json.Number(""), json.Number("x"), upper{"u"}, &upper{"u"}, &lower{"l"}, []*lower{{"x"}, nil}, (*lower)(nil),
		(*upper)(nil), big.NewInt(12345678901234567), netip.MustParseAddr("10.0.0.1"), struct{}{}, one{}, one{&n}, &one{&n},
		struct{ A, b int }{1, 2}, Deep{Inner{1, 2}, 3}, &Deep{}, struct {
			Inner
			Other
		}{Inner{1, 2}, Other{3, 4}},
		struct {
			*Inner
			X int
		}{nil, 1},
		struct {
			*Inner
			X int
		}{&Inner{5, 6}, 1},
		struct {
			hidden
			text
			Y int
		}{hidden{1}, "no", 2},
		struct {
			Inner `json:"named"`
			B     int `json:"a"`
		}{Inner{1, 2}, 3},
		struct {
			A int     `json:"-"`
			B int     `json:"-,"`
			C int     `json:",omitempty"`
			D int     `json:"weird name!"`
			E int     `json:"bad\"name"`
			F string  `json:"été"`
			G *string `json:"<g>"`
		}{1, 2, 0, 4, 5, "6", &s},
		struct {
			S string         `json:"s,omitempty"`
			N int            `json:"n,omitempty"`
			F float64        `json:"f,omitempty"`
			B bool           `json:"b,omitempty"`
			L []int          `json:"l,omitempty"`
			M map[string]int `json:"m,omitempty"`
			P *int           `json:"p,omitempty"`
			I any            `json:"i,omitempty"`
			A [0]int         `json:"d,omitempty"`
			T time.Time      `json:"t,omitempty"`
			U struct{}       `json:"u,omitempty"`
			V uint16         `json:"v,omitempty"`
		}{L: []int{}, M: map[string]int{}},
		struct {
			T time.Time  `json:"t,omitzero"`
			Z zero       `json:"z,omitzero"`
			P *zero      `json:"p,omitzero"`
			Q *zero      `json:"q,omitzero"`
			S string     `json:"s,omitzero"`
			N int        `json:"n,omitzero"`
			W int64      `json:"w,omitzero"`
			B bool       `json:"b,omitzero"`
			F float32    `json:"f,omitzero"`
			L []int      `json:"l,omitzero"`
			M []int      `json:"m,omitzero"`
			I any        `json:"i,omitzero"`
			E Inner      `json:"e,omitzero"`
			X *time.Time `json:"x,omitempty,omitzero"`
		}{Z: zero{42}, P: &zero{42}, M: []int{}},
		struct {
			N int         `json:"n,string"`
			U uint8       `json:"u,string"`
			F float64     `json:"f,string"`
			B bool        `json:"b,string"`
			S string      `json:"s,string"`
			P *int        `json:"p,string"`
			Q *int        `json:"q,string"`
			L []int       `json:"l,string"`
			T time.Time   `json:"t,string"`
			J json.Number `json:"j,string"`
			M number      `json:"m,string"`
			R *string     `json:"r,string"`
		}{N: 1, U: 2, F: 1.5, B: true, S: "a\"b", P: &n, L: []int{1}, J: "5", M: 4, R: &s},
		Tree{"root", []*Tree{{Name: "a"}, nil, {Name: "b", Children: []*Tree{{Name: "c"}}}},
			map[string]*Tree{"x": {Name: "y"}, "n": nil}},
		struct{ I any }{Inner{1, 2}}, struct{ I any }{&n}, struct{ I error }{nil},
		struct{ A [2]Inner }{}, struct{ S []Inner }{[]Inner{{1, 2}, {3, 4}}},
		struct{ M map[string]Inner }{map[string]Inner{"k": {1, 2}}},
	}
}

// TestEncodeAsEncodingJSON: structs and maps become what encoding/json makes of
// them.
func TestEncodeAsEncodingJSON(t *testing.T) {
	for range 2 { // the second time with programs that are there already
		for _, v := range shapes() {
			compare(t, v)
		}
	}
}

type item struct {
	ID string `json:"id"`
}

// TestEncodeTexts: texts of every length, with what needs an escape at every
// place, are spelled as strictjson.AppendQuote does.
func TestEncodeTexts(t *testing.T) {
	const long = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for n := range 36 {
		for at := range n + 1 {
			for _, special := range []string{"", `"`, `\`, "\n", "\x00", "\x1f", "\x7f", "é", "😀", "\xff",
				"\xed\xa0\x80", "\u2028"} {
				s := long[:at] + special + long[at:n]
				got, err := encoded(s)
				want := string(strictjson.AppendQuote(nil, s))
				if got != want || err != nil {
					t.Fatalf("%q: %s, want %s (%v)", s, got, want, err)
				}
				if got, err := encoded(&item{s}); got != `{"id":`+want+`}` || err != nil {
					t.Fatalf("%q in a struct: %s (%v)", s, got, err)
				}
				if got, err := encode.NewRecord("", nil).String("id", s).MarshalJSON(); string(got) != `{"id":`+
					want+`}` || err != nil {
					t.Fatalf("%q in a record: %s (%v)", s, got, err)
				}
			}
		}
	}
}

// TestEncodeNames: names of every length stand before values of every kind, the
// first time and when the position knows them.
func TestEncodeNames(t *testing.T) {
	rec := encode.NewRecord("", nil)
	for n := 1; n < 40; n++ {
		name := strings.Repeat("n", n)
		fields := []reflect.StructField{}
		for i, typ := range []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[int64](),
			reflect.TypeFor[float64](), reflect.TypeFor[bool](), reflect.TypeFor[[]string]()} {
			fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: typ,
				Tag: reflect.StructTag(fmt.Sprintf(`json:"%s%d"`, name, i))})
		}
		v := reflect.New(reflect.StructOf(fields))
		v.Elem().Field(0).SetString("a text")
		v.Elem().Field(1).SetInt(-int64(n))
		v.Elem().Field(3).SetFloat(1.25)
		v.Elem().Field(5).Set(reflect.ValueOf([]string{"x"}))
		compare(t, v.Interface())
		want := fmt.Sprintf(`{"%[1]s0":"a text","%[1]s1":%[2]d,"%[1]s2":1.25,"%[1]s3":1e-7,"%[1]s4":false}`, name, -n)
		for range 2 {
			rec.Reset().String(name+"0", "a text").Int(name+"1", -int64(n)).Float(name+"2", 1.25).Float(name+"3",
				1e-7).Bool(name+"4", false)
			if got, err := rec.MarshalJSON(); string(got) != want || err != nil {
				t.Errorf("%s, want %s (%v)", got, want, err)
			}
		}
		rec = encode.NewRecord("", nil)
	}
}

// TestEncodeIntegers: every length and every carry.
func TestEncodeIntegers(t *testing.T) {
	for shift := range 64 {
		for d := range int64(3) {
			n := int64(1)<<shift + d - 1
			compare(t, n)
			compare(t, -n)
			compare(t, uint64(n))
		}
	}
	for n, i := int64(1), 0; i < 19; n, i = n*10, i+1 {
		compare(t, n)
		compare(t, n-1)
		compare(t, -n)
	}
}

// TestEncodePointerMethods: a method of the pointer counts where the value has
// no address either, which encoding/json leaves to chance.
func TestEncodePointerMethods(t *testing.T) {
	got, err := encoded(map[string]any{"l": lower{"x"}, "s": struct{ L lower }{lower{"y"}}})
	if got != `{"l":"low x","s":{"L":"low y"}}` || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

// TestEncodeDepth: a value that contains itself, or is deeper than a host takes, is an error
// and not the end of the process.
func TestEncodeDepth(t *testing.T) {
	loop := &Tree{Name: "loop"}
	loop.Children = []*Tree{loop}
	type pointer *pointer
	var p pointer
	p = &p
	var any1 any
	any1 = &any1
	m := map[string]any{}
	m["m"] = m
	list := []any{nil}
	list[0] = list
	for _, v := range []any{loop, p, any1, m, list} {
		if _, err := encoded(v); err == nil {
			t.Errorf("%T: no error", v)
		}
	}
	nest := func(n int) any {
		v := any("end")
		for range n {
			v = []any{v}
		}
		return v
	}
	if _, err := encoded(nest(strictjson.MaxDepth)); err != nil {
		t.Errorf("as deep as allowed: %v", err)
	}
	if _, err := encoded(nest(strictjson.MaxDepth + 1)); err == nil {
		t.Error("one deeper: no error")
	}
}

// TestGoldenTexts holds texts to the one spelling that the contract has.
func TestGoldenTexts(t *testing.T) {
	b, err := os.ReadFile("../../abi/strictjson/testdata/quotes.json")
	if err != nil {
		t.Fatal(err)
	}
	var texts []struct{ Text, Literal string }
	if err := json.Unmarshal(b, &texts); err != nil {
		t.Fatal(err)
	}
	for _, c := range texts {
		if got, err := encoded(c.Text); got != c.Literal || err != nil {
			t.Errorf("%q: %s, want %s (%v)", c.Text, got, c.Literal, err)
		}
	}
}

// FuzzEncode compares with encoding/json, and holds the result to what a host
// accepts.
func FuzzEncode(f *testing.F) {
	f.Add("text", []byte("bytes"), int64(1), 1.5, true)
	f.Add("a\"\\\x00\u2028é\xff", []byte(nil), int64(math.MinInt64), 1e-7, false)
	f.Add("12345678\n", []byte{0}, int64(4294967296), 1e21, false)
	f.Fuzz(func(t *testing.T, s string, b []byte, n int64, x float64, flag bool) {
		type value struct {
			S    string            `json:"s"`
			Tag  string            `json:"tag,omitempty"`
			Q    string            `json:"q,string"`
			B    []byte            `json:"b"`
			N    int64             `json:"n"`
			I    int               `json:"i,omitempty"`
			U    uint32            `json:"u"`
			X    float64           `json:"x"`
			Y    float32           `json:"y,omitempty"`
			F    bool              `json:"f"`
			L    []string          `json:"l"`
			M    map[string]string `json:"m,omitempty"`
			P    *string           `json:"p"`
			T    time.Time         `json:"t"`
			Any  any               `json:"any"`
			Deep *value            `json:"deep,omitempty"`
		}
		v := &value{S: s, Tag: s[:len(s)/2], Q: "q", B: b, N: n, I: int(n), U: uint32(n), X: x, F: flag,
			L: strings.Split(s, "a"), T: time.UnixMicro(n % 1e15).UTC()}
		if !math.IsInf(float64(float32(x)), 0) {
			v.Y = float32(x)
		}
		if flag {
			v.P, v.Any, v.Deep = &s, map[string]any{"k": s, "n": x}, &value{S: s, Any: []any{n, s, nil}}
		}
		compare(t, v)
		if got, err := encoded(v); err == nil {
			if _, err := strictjson.Parse([]byte(got), strictjson.ParseOptions{}); err != nil {
				t.Errorf("a host refuses %s: %v", got, err)
			}
		}
	})
}

// A float is written as encoding/json writes it, on the short way as on the
// long one.
func FuzzFloat(f *testing.F) {
	for _, v := range []float64{0, math.Copysign(0, -1), 0.1, 0.25, 1.005, -2.675, 999_999_999_999.999, 1e12, 1e12 - 0.001,
		123456.789, 0.001, 0.0005, 1e-6, 1e-7, 1e21, 5e-324} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return
		}
		for _, v := range []float64{v, math.Round(v*1000) / 1000, math.Round(v*10) / 10, math.Mod(v, 1e6),
			math.Round(math.Mod(v, 1e9)*1000) / 1000} {
			want, err := json.Marshal(v)
			if err != nil {
				return
			}
			got, err := encode.NewRecord("", nil).Float("v", v).MarshalJSON()
			if err != nil || string(got) != `{"v":`+string(want)+`}` {
				t.Errorf("%v: %s, %v; want %s", v, got, err, want)
			}
		}
	})
}
