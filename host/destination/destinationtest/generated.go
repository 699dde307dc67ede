package destinationtest

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/store"
)

// wild are values of every type, and at their limits.
var wild = []string{
	"null", "true", "false", "0", "-0", "7", "-1", "9007199254740992", "9007199254740993", "-9007199254740993",
	"9223372036854775807", "-9223372036854775808", "9223372036854775808", "2.5", "-0.0", "1e3", "1E-7", "5e-324",
	"1.7976931348623157e308", "1e400", "0.1", "123456789012345678901234567890", `""`, `"7"`, `"true"`, `"null"`, `"=1+1"`,
	`"'=1"`, `"it's \"x\" %s\n\t"`, `"é \u202e 名"`, `"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05.123456+05:30"`,
	`"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.999999Z"`, `"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59-12:00"`,
	`"2016-12-31T23:59:60Z"`, `"10000-01-01T00:00:00Z"`, `"2026-02-30T00:00:00Z"`, `{}`, `[]`,
	`{"a":[1,null,{"b":"x"}]}`, `["a",{"":1}]`,
}

// fields have names that collide by case, by length or with columns of the table.
var fields = []string{"x", "X", "_key", "_version", "SELECT", "a b", strings.Repeat("long", 20) + "1",
	strings.Repeat("long", 20) + "2", "ctid", "", "rowid", "_rowid_", "oid", "_sluice_was", `"]'\`, "x--y", "K", "\u212a",
	"e\u0301", "\u00e9", "a.b"}

// generated brings in records whose fields change their types between batches and within them, and checks every value
// of every row after each batch.
func generated(t *testing.T, p Place, mode destination.Mode) {
	seed, err := strconv.ParseUint(os.Getenv("SLUICE_SEED"), 10, 64)
	if err != nil {
		seed = uint64(rand.Uint32()) // #nosec G404 -- a test
	}
	t.Logf("the same again: SLUICE_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) // #nosec G404 -- a test
	src := newSource()
	s := open(t, p)
	for step := range 12 {
		few := wild
		if step < 8 { // types that change slowly widen one by one
			at := r.IntN(len(wild) - 3)
			few = wild[at : at+3]
		}
		for range 1 + r.IntN(6) {
			key := fmt.Sprint("k", r.IntN(8))
			if r.IntN(6) == 0 {
				src.drop(key)
				continue
			}
			var members []string
			for _, f := range fields {
				if r.IntN(3) > 0 {
					name, _ := json.Marshal(f)
					members = append(members, string(name)+":"+few[r.IntN(len(few))])
				}
			}
			src.put(key, "{"+strings.Join(members, ",")+"}")
		}
		if err := src.bring(s, mode); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		checkValues(t, p, s, src, mode)
	}
}

// checkValues compares a table with all versions that it is to have.
func checkValues(t *testing.T, p Place, s destination.Sink, src *source, mode destination.Mode) {
	t.Helper()
	holdings, err := s.Holdings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]string{}
	for _, c := range holdings[src.id].Shape.Columns {
		columns[c.Field] = c.Name
	}
	rows := map[string]map[string]string{}
	for _, row := range p.Rows(t, "mail_items") {
		rows[row["_version"]] = row
	}
	var want []store.Record
	for _, rec := range src.log {
		if !rec.Deleted && (mode == destination.History || src.now[rec.Key].Version == rec.Version) {
			want = append(want, rec)
		}
	}
	if len(rows) != len(want) {
		t.Fatalf("there are %d rows, want %d", len(rows), len(want))
	}
	for _, rec := range want {
		row := rows[fmt.Sprint(rec.Version)]
		var data map[string]json.RawMessage
		if err := json.Unmarshal(rec.Data, &data); err != nil {
			t.Fatal(err)
		}
		for field, value := range data {
			got, there := row[columns[field]]
			if text := string(value); text == `""` && !there && p.Text != nil {
				continue // a cell of CSV is empty either way
			} else if there != (text != "null") || there && !p.same(text, got) {
				t.Errorf("%s of %s, version %d, became %q (%v), want %s", field, rec.Key, rec.Version, got, there, value)
			}
		}
	}
}

// same reports whether a text in a table is a value. A number may have another spelling and an instant another zone,
// because their columns may have had a type of their own before.
func (p Place) same(value, got string) bool {
	if value[0] != '"' {
		a, ok1 := new(big.Rat).SetString(value)
		b, ok2 := new(big.Rat).SetString(got)
		if ok1 && ok2 && strings.ContainsAny(value, ".eE") && value != "1e400" {
			x, _ := a.Float64()
			y, _ := b.Float64()
			return x == y
		}
		if ok1 && ok2 {
			return a.Cmp(b) == 0
		}
		return sorted([]map[string]string{{"v": value}})[0]["v"] == sorted([]map[string]string{{"v": got}})[0]["v"]
	}
	var text string
	if json.Unmarshal([]byte(value), &text) != nil {
		return false
	}
	if p.Text != nil && p.Text(text) == got {
		return true
	}
	a, err1 := time.Parse(time.RFC3339Nano, text)
	b, err2 := time.Parse(time.RFC3339Nano, got)
	return text == got || err1 == nil && err2 == nil && a.Equal(b)
}
