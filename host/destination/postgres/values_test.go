//go:build unix

package postgres_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/destination"
	server "github.com/sluicehost/sluice/tests/postgres"
)

// TestTypes looks at what other programs see.
func TestTypes(t *testing.T) {
	at := server.New(t)
	if err := open(t, at).Apply(t.Context(),
		batch(destination.History,
			`{"b":true,"i":1,"f":1.5,"t":"2026-01-02T03:04:05+01:00","j":[1],"s":"x","none":null}`)); err != nil {
		t.Fatal(err)
	}
	if got := one(t, at, `SELECT string_agg(attname || ' ' || format_type(atttypid, null), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'sluice.mail_items'::regclass AND attnum > 0`); got !=
		"_key text, _version bigint, _committed_at timestamp with time zone, _valid_from timestamp with time zone, _valid_to timestamp with time zone, "+
			"b boolean, i bigint, f double precision, t timestamp with time zone, j jsonb, s text, none text, _rest jsonb" {
		t.Error(got)
	}
}

// TestValues brings in what is hard to hold.
func TestValues(t *testing.T) {
	at := server.New(t)
	sink := open(t, at)
	long := strings.Repeat("9", 1001)
	b := batch(destination.Current, `{"n":5e-324,"i":9223372036854775807,"t":"0001-01-01T00:00:00Z","neg":-0.0}`,
		`{"n":1.7976931348623157e308,"i":-9223372036854775808,"t":"9999-12-31T23:59:59.999999999Z"}`,
		`{"j":{"e":1e999999,"m":-1E-1001,"ok":1e1000,"long":`+long+`,"text":"1e999999 \" 1e9999","deep":[[1e2000]]}}`)
	// Records that came in before NUL was refused.
	b.Rows[0].Key = "nul\x00key"
	b.Rows[0].Values = append(b.Rows[0].Values,
		destination.Value{Type: destination.JSON, Text: `{"a\u0000b":"\\u0000 \u0000","\u0000":["\\\u0000x"]}`},
		destination.Value{Type: destination.Text, Text: "a\x00b"})
	b.To.Shape.Columns = append(b.To.Shape.Columns[:4], destination.Column{Field: "j", Name: "j", Type: destination.JSON},
		destination.Column{Field: "s", Name: "s", Type: destination.Text})
	if err := sink.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ sql, want string }{
		{"SELECT n = 5e-324 FROM sluice.mail_items WHERE _version = 1", "true"},
		{"SELECT i FROM sluice.mail_items WHERE _version = 1", "9223372036854775807"},
		{"SELECT t = '0001-01-01 00:00:00+00' FROM sluice.mail_items WHERE _version = 1", "true"},
		{"SELECT _key || s FROM sluice.mail_items WHERE _version = 1", "nul\uFFFDkeya\uFFFDb"},
		{`SELECT j = '{"a\ufffdb":"\\u0000 \ufffd","\ufffd":["\\\ufffdx"]}' FROM sluice.mail_items WHERE _version = 1`,
			"true"},
		{"SELECT n = '1.7976931348623157e308' FROM sluice.mail_items WHERE _version = 2", "true"},
		{"SELECT t = '9999-12-31 23:59:59.999999+00' FROM sluice.mail_items WHERE _version = 2", "true"},
		{`SELECT j = ('{"e":"1e999999","m":"-1E-1001","ok":1e1000,"long":"` + long +
			`","text":"1e999999 \" 1e9999","deep":[["1e2000"]]}')::jsonb FROM sluice.mail_items WHERE _version = 3`, "true"},
	} {
		if got := one(t, at, tt.sql); got != tt.want {
			t.Errorf("%s is %s", tt.sql, got)
		}
	}
}

// TestWiden widens every type with values that were there before.
func TestWiden(t *testing.T) {
	src := &source{}
	at := server.New(t)
	sink := open(t, at)
	bring := func(data string) {
		t.Helper()
		src.put(fmt.Sprint("k", len(src.changes)), data)
		if err := src.bring(t.Context(), sink, destination.Current); err != nil {
			t.Fatal(err)
		}
	}
	bring(`{"b":false,"i":9007199254740993,"in":7,"f":0.1,"t":"2026-01-02T03:04:05.123456789+01:00","old":"0001-02-03T04:05:06Z","late":"9999-01-01T00:00:00Z","j":{"a":[1,"x"]},"none":null}`)
	bring(`{"b":"x","i":"x","in":0.5,"f":"x","t":"x","old":"x","late":"x","j":"x","none":{"now":1},"more":1}`)
	rows := read(t, at, "sluice", "mail_items")
	want := map[string]string{"b": "false", "i": "9007199254740993", "in": "7", "f": "0.1",
		"t": "2026-01-02T02:04:05.123456Z", "old": "0001-02-03T04:05:06.000000Z",
		"late": "9999-01-01T00:00:00.000000Z", "j": `{"a": [1, "x"]}`, "none": ""}
	for name, value := range want {
		if rows[0][name] != value {
			t.Errorf("%s is %q, want %q", name, rows[0][name], value)
		}
	}
	if rows[1]["none"] != `{"now": 1}` || rows[1]["more"] != "1" {
		t.Errorf("%v", rows[1])
	}
	bring(`{"i":123456789012345678901234567890,"none":7,"in":1e400}`)
	if last := read(t, at, "sluice", "mail_items")[2]; last["i"] != "123456789012345678901234567890" ||
		last["none"] != "7" || last["in"] != "1e400" {
		t.Errorf("%v", last)
	}
}

// TestWideRows: a thousand columns of each type, full, are in one row or in its rest.
func TestWideRows(t *testing.T) {
	at := server.New(t)
	for what, value := range map[string]string{
		"short": `"twenty characters.20"`, "long": `"` + strings.Repeat("long ", 60) + `"`,
		"longer": `"` + strings.Repeat("0123456789abcdef", 300) + `"`, "integer": "7", "number": "0.25",
		"time": `"2026-01-02T03:04:05Z"`, "boolean": "true", "json": `{"a":[1,2,"three"]}`, "empty": `""`,
		"22": `"twenty-two characters.2"`,
	} {
		for _, flatten := range []bool{false, true} {
			t.Run(fmt.Sprint(what, flatten), func(t *testing.T) {
				var members []string
				for n := range 1200 {
					if flatten {
						members = append(members, fmt.Sprintf(`"o%04d":{"in":%s,"i":1}`, n, value))
					} else {
						members = append(members, fmt.Sprintf(`"f%04d":%s,"i%04d":%d`, n, value, n, n))
					}
				}
				data := "{" + strings.Join(members, ",") + "}"
				b := batch(destination.Current)
				b.ID.Stream = "wide"
				b.To.Shape.Flatten = flatten
				b.To.Mark = 1
				row := destination.Row{Key: "a", Version: 1, At: since}
				row.Values, row.Rest = b.To.Shape.Row([]byte(data), nil)
				b.Rows = append(b.Rows, row)
				sink := open(t, with(t, at, "schema", "wide"))
				if err := sink.Apply(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				again := *b
				again.From, again.To.Mark = &b.To, 2
				again.Rows[0].Version = 2
				if err := sink.Apply(t.Context(), &again); err != nil { // by the stage
					t.Fatal(err)
				}
				compareWide(t, read(t, at, "wide", "mail_wide")[0], b.To.Shape, data)
				if err := sink.Clear(t.Context(), b.ID); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// compareWide finds each member of a record in its column or in the rest.
func compareWide(t *testing.T, row map[string]string, shape *destination.Shape, data string) {
	t.Helper()
	var want, rest map[string]any
	if err := json.Unmarshal([]byte(data), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(row["_rest"]), &rest); err != nil {
		t.Fatal(err)
	}
	at := map[[2]string]string{}
	for _, c := range shape.Columns {
		at[[2]string{c.Field, c.Inner}] = c.Name
	}
	columns := 0
	same := func(field, inner string, value, other any) {
		text, there := row[at[[2]string{field, inner}]]
		if !there {
			a, _ := json.Marshal(value)
			b, _ := json.Marshal(other)
			if string(a) != string(b) {
				t.Errorf("%s %s is %s in the rest, want %s", field, inner, b, a)
			}
			return
		}
		columns++
		plain := fmt.Sprint(value)
		if _, isTime := time.Parse(time.RFC3339, plain); isTime == nil {
			plain = strings.Replace(plain, "Z", ".000000Z", 1)
		}
		var parsed any
		if text != plain && (json.Unmarshal([]byte(text), &parsed) != nil || fmt.Sprint(parsed) != plain) {
			t.Errorf("%s %s is %s, want %s", field, inner, text, plain)
		}
	}
	for field, value := range want {
		object, is := value.(map[string]any)
		if !is || !shape.Flatten {
			same(field, "", value, rest[field])
			continue
		}
		over, _ := rest[field].(map[string]any)
		for inner, value := range object {
			same(field, inner, value, over[inner])
		}
	}
	if columns < 300 {
		t.Errorf("%d columns have a value", columns)
	}
}

// TestNumbers: what a column of double precision has is what the record had, to the bit.
func TestNumbers(t *testing.T) {
	at := server.New(t)
	numbers := []float64{0.1, 1.0 / 3, math.MaxFloat64, math.SmallestNonzeroFloat64, -2.5e-300, 123456789.123456789,
		math.Copysign(0, -1)}
	var data []string
	for _, n := range numbers {
		text := strconv.FormatFloat(n, 'e', -1, 64)
		data = append(data, `{"n":`+text+`}`)
	}
	if err := open(t, at).Apply(t.Context(), batch(destination.Current, data...)); err != nil {
		t.Fatal(err)
	}
	for i, n := range numbers {
		got, err := strconv.ParseFloat(one(t, at, fmt.Sprint("SELECT n FROM sluice.mail_items WHERE _version = ", i+1)), 64)
		if err != nil || math.Float64bits(got) != math.Float64bits(n) {
			t.Errorf("%v is %v, %v", n, got, err)
		}
	}
}
