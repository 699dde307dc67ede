// Package destinationtest tests that every kind of destination keeps the same promises.
package destinationtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/store"
)

// A Place is where one test has a destination.
type Place struct {
	Kind destination.Kind
	URL  string
	// Rows reads a table. For each row it returns the values that are not NULL, by column, as text: instants in the
	// form 2006-01-02T15:04:05.000000Z, booleans as true or false, JSON as it is.
	Rows func(t *testing.T, table string) []map[string]string
	// Text returns what is stored for a text, for a kind that cannot store all; nil if it can.
	Text func(text string) string
	// Squat creates something by that name that is not Sluice's; nil if the kind cannot have that.
	Squat func(t *testing.T, table string)
	// Erase removes everything in the place while a sink is open.
	Erase func(t *testing.T)
	// Marks are for a kind that stores none itself, whose rows may arrive twice; nil for others.
	Marks destination.Marks
	// File reads a content by the path in a row or, if that is "", by its digest.
	File func(t *testing.T, digest, path string) []byte
}

var owner = destination.Owner{Host: "host-1", Destination: "d"}

// RunAtLeastOnce runs the tests that apply to a kind without tables and marks of its own.
func RunAtLeastOnce(t *testing.T, place func(t *testing.T) Place) {
	t.Run("changes", func(t *testing.T) { changes(t, place(t), destination.Current) })
	t.Run("drift", func(t *testing.T) { drift(t, place(t)) })
	t.Run("widening", func(t *testing.T) { widening(t, place(t)) })
	t.Run("limits", func(t *testing.T) { limits(t, place(t)) })
	t.Run("again", func(t *testing.T) { again(t, place(t)) })
}

// Run runs all tests. place makes a new, empty place.
func Run(t *testing.T, place func(t *testing.T) Place) {
	for _, mode := range destination.Modes {
		t.Run("changes/"+string(mode), func(t *testing.T) { changes(t, place(t), mode) })
	}
	t.Run("claims", func(t *testing.T) { claims(t, place(t)) })
	t.Run("drift", func(t *testing.T) { drift(t, place(t)) })
	t.Run("widening", func(t *testing.T) { widening(t, place(t)) })
	t.Run("limits", func(t *testing.T) { limits(t, place(t)) })
	for _, mode := range []destination.Mode{destination.Current, destination.History} {
		t.Run("generated/"+string(mode), func(t *testing.T) { generated(t, place(t), mode) })
	}
	t.Run("names", func(t *testing.T) { names(t, place(t)) })
	t.Run("tables", func(t *testing.T) { tables(t, place(t)) })
	t.Run("wide", func(t *testing.T) { wide(t, place(t)) })
	t.Run("again", func(t *testing.T) { again(t, place(t)) })
	t.Run("files", func(t *testing.T) { keptFiles(t, place(t)) })
	t.Run("squatter", func(t *testing.T) { squatter(t, place(t)) })
	t.Run("erased", func(t *testing.T) { erased(t, place(t)) })
}

func open(t *testing.T, p Place) destination.Sink {
	t.Helper()
	o := owner
	o.Marks = p.Marks
	s, err := p.Kind.Open(t.Context(), p.URL, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A source is a stream in memory.
type source struct {
	id      destination.StreamID
	since   time.Time
	version uint64
	now     map[string]store.Record
	log     []store.Record // all versions that a reader may have seen
	files   map[store.Digest][]byte
}

func newSource() *source {
	return &source{id: destination.StreamID{Connection: "mail", Stream: "items"}, since: time.Unix(1_700_000_000, 0).UTC(),
		now: map[string]store.Record{}}
}

func (s *source) add(r store.Record) {
	s.version++
	r.Stream, r.Version, r.IngestedAt = s.id.Stream, s.version, s.since.Add(time.Duration(s.version)*time.Millisecond)
	s.now[r.Key] = r
}

func (s *source) put(key, data string) { s.add(store.Record{Key: key, Data: json.RawMessage(data)}) }
func (s *source) drop(key string)      { s.add(store.Record{Key: key, Deleted: true}) }

// Records implements destination.Source.
func (s *source) Records(_ context.Context, q store.RecordQuery) (store.RecordPage, error) {
	all := slices.SortedFunc(maps.Values(s.now), func(a, b store.Record) int { return int(a.Version) - int(b.Version) })
	page := store.RecordPage{Version: s.version, After: q.After}
	for _, r := range all {
		if r.Version <= q.After {
			continue
		}
		if len(page.Records) == q.Limit {
			page.More = true
			break
		}
		page.Records, page.After = append(page.Records, r), r.Version
	}
	return page, nil
}

// bring brings the sink up to date and logs the records that it has then seen.
func (s *source) bring(sink destination.Sink, mode destination.Mode) error {
	holdings, err := sink.Holdings(context.Background())
	if err != nil {
		return err
	}
	var have *destination.Holding
	if h, ok := holdings[s.id]; ok {
		have = &h
	}
	w := destination.Wanted{StreamID: s.id, Since: s.since, Mode: mode, Last: s.version}
	if s.files != nil {
		w.Spec.Properties = map[string]abi.Property{"file": {Types: []string{"object"}, Format: "file"},
			"files": {Types: []string{"array"}, Format: "file"}}
		w.Open = s.open
	}
	err = destination.Bring(context.Background(), s, sink, w, have, func(int) {})
	if err == nil {
		for _, r := range s.now {
			if !slices.ContainsFunc(s.log, func(l store.Record) bool { return l.Version == r.Version }) {
				s.log = append(s.log, r)
			}
		}
	}
	return err
}

const layout = "2006-01-02T15:04:05.000000Z"

// want returns the expected rows of a table, by its own columns and the members of the data.
func (s *source) want(mode destination.Mode) []map[string]string {
	var out []map[string]string
	row := func(r store.Record) map[string]string {
		m := map[string]string{"_key": r.Key, "_version": fmt.Sprint(r.Version),
			"_committed_at": r.IngestedAt.UTC().Format(layout)}
		var data map[string]any
		if len(r.Data) > 0 {
			if err := json.Unmarshal(r.Data, &data); err != nil {
				panic(err)
			}
		}
		for k, v := range data {
			switch v := v.(type) {
			case nil:
			case string:
				m[k] = v
			default:
				text, _ := json.Marshal(v)
				m[k] = string(text)
			}
		}
		return m
	}
	if mode == destination.History {
		for _, r := range s.log {
			if r.Deleted {
				continue
			}
			m := row(r)
			m["_valid_from"] = m["_committed_at"]
			later := slices.DeleteFunc(slices.Clone(s.log),
				func(l store.Record) bool { return l.Key != r.Key || l.Version <= r.Version })
			if len(later) > 0 {
				next := slices.MinFunc(later, func(a, b store.Record) int { return int(a.Version) - int(b.Version) })
				m["_valid_to"] = next.IngestedAt.UTC().Format(layout)
			}
			out = append(out, m)
		}
		return sorted(out)
	}
	for _, r := range s.now {
		m := row(r)
		if r.Deleted {
			if mode == destination.Current {
				continue
			}
			m["_deleted_at"] = m["_committed_at"]
			// The data from before the deletion stays, if it was ever there.
			for _, l := range slices.Backward(s.log) {
				if l.Key == r.Key && !l.Deleted {
					maps.Copy(m, withoutOwn(row(l)))
					break
				}
			}
		}
		out = append(out, m)
	}
	return sorted(out)
}

func withoutOwn(m map[string]string) map[string]string {
	maps.DeleteFunc(m, func(k, _ string) bool { return strings.HasPrefix(k, "_") })
	return m
}

func sorted(rows []map[string]string) []map[string]string {
	for _, r := range rows {
		for k, v := range r {
			if strings.HasPrefix(v, "{") || strings.HasPrefix(v, "[") { // JSON, however it is spelled
				var any any
				if json.Unmarshal([]byte(v), &any) == nil {
					text, _ := json.Marshal(any)
					r[k] = string(text)
				}
			}
		}
	}
	slices.SortFunc(rows, func(a, b map[string]string) int {
		return strings.Compare(a["_key"]+" "+fmt.Sprintf("%09s", a["_version"]),
			b["_key"]+" "+fmt.Sprintf("%09s", b["_version"]))
	})
	return rows
}

func check(t *testing.T, p Place, s *source, mode destination.Mode) {
	t.Helper()
	if diff := cmp.Diff(s.want(mode), sorted(p.Rows(t, "mail_items"))); diff != "" {
		t.Fatalf("the table (-want +got):\n%s", diff)
	}
}

// changes brings in random changes with fixed types in many steps, each with a new sink.
func changes(t *testing.T, p Place, mode destination.Mode) {
	r := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- a test
	src := newSource()
	for range 8 {
		for range 60 {
			key := fmt.Sprintf("k%02d", r.IntN(40))
			if r.IntN(4) == 0 {
				src.drop(key)
				continue
			}
			src.put(key, fmt.Sprintf(
				`{"n":%d,"f":%d.5,"ok":%v,"at":"2026-01-0%dT10:00:00.000000Z","text":"it's \"%d\" %%","list":[%d,{"a":null}],"none":null}`,
				r.IntN(1000), r.IntN(9), r.IntN(2) == 0, 1+r.IntN(9), r.IntN(9), r.IntN(9)))
		}
		s := open(t, p)
		if err := src.bring(s, mode); err != nil {
			t.Fatal(err)
		}
		if err := src.bring(s, mode); err != nil { // nothing new
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		check(t, p, src, mode)
	}
}

// claims tests that a later start of the host takes over and another host does not.
func claims(t *testing.T, p Place) {
	if local, ok := p.Kind.(destination.Local); ok {
		if here, err := local.Here(t.Context(), p.URL, owner); here || err != nil {
			t.Errorf("what nobody claimed is here: %v, %v", here, err)
		}
	}
	first := open(t, p)
	src := newSource()
	src.put("a", `{"x":1}`)
	if err := src.bring(first, destination.Current); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Kind.Open(t.Context(), p.URL, destination.Owner{Host: "host-2", Destination: "d"}); !errors.Is(err,
		destination.ErrClaimed) {
		t.Errorf("another host: %v", err)
	}
	if _, err := p.Kind.Open(t.Context(), p.URL, destination.Owner{Host: "host-1", Destination: "e"}); !errors.Is(err,
		destination.ErrClaimed) {
		t.Errorf("another destination of the host: %v", err)
	}
	if local, ok := p.Kind.(destination.Local); ok {
		for o, want := range map[destination.Owner]bool{owner: true, {Host: "host-2", Destination: "d"}: false,
			{Host: "host-1", Destination: "e"}: false} {
			if here, err := local.Here(t.Context(), p.URL, o); here != want || err != nil {
				t.Errorf("%+v is here: %v, %v", o, here, err)
			}
		}
	}
	src.put("b", `{"x":2}`)
	second := open(t, p)
	if err := src.bring(first, destination.Current); !errors.Is(err, destination.ErrFenced) {
		t.Errorf("the first after the second: %v", err)
	}
	if err := first.Clear(t.Context(), src.id); !errors.Is(err, destination.ErrFenced) {
		t.Errorf("the first clears after the second: %v", err)
	}
	if err := src.bring(second, destination.Current); err != nil {
		t.Fatal(err)
	}
	check(t, p, src, destination.Current)
	other, err := p.Kind.Open(t.Context(), p.URL, destination.Owner{Host: "host-2", Destination: "d", TakeOver: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	src.drop("a")
	if err := src.bring(second, destination.Current); !errors.Is(err, destination.ErrFenced) {
		t.Errorf("after it was taken over: %v", err)
	}
	if err := src.bring(other, destination.Current); err != nil {
		t.Fatal(err)
	}
	check(t, p, src, destination.Current)
}

// drift tests fields that change type, appear and disappear.
func drift(t *testing.T, p Place) {
	src := newSource()
	s := open(t, p)
	for _, step := range []struct{ data, column, want string }{
		{`{"x":1}`, "x", "1"},
		{`{"x":2.5,"new":true}`, "x", "2.5"},
		{`{"x":"three"}`, "x", "three"},
		{`{"new":"yes","when":"2026-02-03T04:05:06Z"}`, "new", "yes"},
		{`{"x":{"deep":[1]}}`, "x", `{"deep":[1]}`},
		{`{"when":"some day"}`, "when", "some day"},
		{`{"big":123456789012345678901234567890}`, "big", "123456789012345678901234567890"},
		{`{"zero":"a\u0001b"}`, "zero", "a\u0001b"},
		{`{"":1,"SELECT":2,"sel\"ect":3}`, "SELECT", "2"},
	} {
		if p.Text != nil {
			step.want = p.Text(step.want)
		}
		key := fmt.Sprint("k", src.version)
		src.put(key, step.data)
		if err := src.bring(s, destination.Current); err != nil {
			t.Fatalf("%s: %v", step.data, err)
		}
		rows := p.Rows(t, "mail_items")
		i := slices.IndexFunc(rows, func(r map[string]string) bool { return r["_key"] == key })
		if i < 0 || sorted(rows[i : i+1])[0][step.column] != step.want || len(rows) != len(src.now) {
			t.Fatalf("%s: %v", step.data, rows)
		}
	}
	rows := sorted(p.Rows(t, "mail_items"))
	if strings.TrimSuffix(rows[0]["x"], ".0") != "1" || rows[1]["new"] != "true" || rows[2]["x"] != "three" {
		t.Errorf("what was there before: %v", rows)
	}
}

// widening tests fields that have values of two types, for all pairs of types.
func widening(t *testing.T, p Place) {
	values := []struct{ json, text string }{
		{"true", "true"}, {"7", "7"}, {"9007199254740993", "9007199254740993"}, {"2.5", "2.5"},
		{`"2026-01-02T03:04:05.000000Z"`, "2026-01-02T03:04:05.000000Z"}, {`{"a":[1]}`, `{"a":[1]}`},
		{`"some text"`, "some text"}, {"null", ""},
	}
	var members [2][]string
	want := [2]map[string]string{{}, {}}
	for i, a := range values {
		for j, b := range values {
			field := fmt.Sprintf("f%d%d", i, j)
			for n, v := range []struct{ json, text string }{a, b} {
				members[n] = append(members[n], fmt.Sprintf("%q:%s", field, v.json))
				if v.text != "" {
					want[n][field] = v.text
				}
			}
		}
	}
	src := newSource()
	s := open(t, p)
	for n := range members {
		src.put(fmt.Sprint("k", n), "{"+strings.Join(members[n], ",")+"}")
		if err := src.bring(s, destination.Current); err != nil {
			t.Fatal(err)
		}
	}
	rows := sorted(p.Rows(t, "mail_items"))
	for n := range want {
		got := withoutOwn(rows[n])
		for field, text := range got {
			got[field] = strings.TrimSuffix(text, ".0") // of integers in a column of numbers
		}
		if diff := cmp.Diff(want[n], got); diff != "" {
			t.Errorf("record %d (-want +got):\n%s", n, diff)
		}
	}
}

// limits tests that values at or beyond the limits of types keep their spelling.
func limits(t *testing.T, p Place) {
	deep := strings.Repeat(`{"n":[`, 30) + "1" + strings.Repeat("]}", 30)
	fields := map[string]string{
		"max": "9223372036854775807", "min": "-9223372036854775808", "above": "9223372036854775808", "huge": "1e400",
		"deep": deep, "digits": strings.Repeat("7", 400), "year0": `"0000-01-01T00:00:00Z"`,
		"before": `"0001-01-01T00:00:00+12:00"`, "after": `"9999-12-31T23:59:59-12:00"`, "february": `"2026-02-30T00:00:00Z"`,
		"leap": `"2016-12-31T23:59:60Z"`, "nobody": `"2026-01-01T00:00:00"`, "invalid": `"\ufffd \u0001"`,
		"empty": `{}`, "none": `[]`,
	}
	var members []string
	want := map[string]string{}
	for name, value := range fields {
		members = append(members, fmt.Sprintf("%q:%s", name, value))
		text := value
		if strings.HasPrefix(value, `"`) {
			if err := json.Unmarshal([]byte(value), &text); err != nil {
				t.Fatal(err)
			}
			if p.Text != nil {
				text = p.Text(text)
			}
		}
		want[name] = text
	}
	src := newSource()
	src.put("a", "{"+strings.Join(members, ",")+"}")
	if err := src.bring(open(t, p), destination.Current); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, withoutOwn(sorted(p.Rows(t, "mail_items"))[0])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// tables tests streams whose tables would have the same name, or a malicious one.
func tables(t *testing.T, p Place) {
	s := open(t, p)
	ids := []destination.StreamID{{Connection: "a", Stream: "b_c"}, {Connection: "a_b", Stream: "c"},
		{Connection: "a", Stream: "B_C"}, {Connection: "a", Stream: "../../b"}, {Connection: "a", Stream: "/b"},
		{Connection: "a", Stream: "x\";DROP TABLE a_b_c;--"}, {Connection: "sqlite", Stream: "x"}, {Connection: "pg", Stream: "x"},
		{Connection: "a", Stream: store.Stream(strings.Repeat("s", 70) + "1")},
		{Connection: "a", Stream: store.Stream(strings.Repeat("s", 70) + "2")}}
	for n, id := range ids {
		src := newSource()
		src.id = id
		src.put("k", fmt.Sprintf(`{"n":%d}`, n))
		if err := src.bring(s, destination.Current); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}
	holdings, err := s.Holdings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n, id := range ids {
		if rows := p.Rows(t, holdings[id].Table); len(rows) != 1 || rows[0]["n"] != fmt.Sprint(n) {
			t.Errorf("%s is %q: %v", id, holdings[id].Table, rows)
		}
	}
}

// squatter tests that tables which are not Sluice's are neither taken nor changed.
func squatter(t *testing.T, p Place) {
	p.Squat(t, "mail_items")
	p.Squat(t, destination.StreamsTable)
	s := open(t, p)
	src := newSource()
	src.put("a", `{"x":1}`)
	for range 2 {
		if err := src.bring(s, destination.Current); !errors.Is(err, destination.ErrForeign) {
			t.Errorf("over a table that is not ours: %v", err)
		}
		if err := s.Describe(t.Context(), []destination.Described{{StreamID: src.id, SyncedAt: time.Now()}}); !errors.Is(err,
			destination.ErrForeign) {
			t.Errorf("over a table of streams that is not ours: %v", err)
		}
	}
	src.id.Stream = "others"
	if err := src.bring(s, destination.Current); err != nil {
		t.Errorf("another stream: %v", err)
	}
}

// erased tests that a sink reports the loss of its data and that the next one fills the place again.
func erased(t *testing.T, p Place) {
	s := open(t, p)
	src := newSource()
	src.put("a", `{"x":1}`)
	if err := src.bring(s, destination.Current); err != nil {
		t.Fatal(err)
	}
	p.Erase(t)
	src.put("b", `{"x":2}`)
	if err := src.bring(s, destination.Current); err == nil {
		t.Error("the sink wrote to what is no more")
	} else {
		t.Log(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := src.bring(open(t, p), destination.Current); err != nil {
		t.Fatal(err)
	}
	check(t, p, src, destination.Current)
}

// names tests fields whose names differ only in case, have 64 kB, or are those of the table's own columns.
func names(t *testing.T, p Place) {
	src := newSource()
	s := open(t, p)
	long := strings.Repeat("long ", 13000)
	src.put("a", fmt.Sprintf(
		`{"Name":"1","name":"2","_key":"3","%s":"4","%sx":"5","ctid":"6","\u202enoitcac":"7","%s":"8","a'; --":"9"}`, long,
		long, strings.Repeat("名", 40)))
	if err := src.bring(s, destination.Current); err != nil {
		t.Fatal(err)
	}
	rows := p.Rows(t, "mail_items")
	if len(rows) != 1 || rows[0]["_key"] != "a" {
		t.Fatalf("%d rows: %v", len(rows), rows)
	}
	got := slices.Sorted(maps.Values(withoutOwn(maps.Clone(rows[0]))))
	if rows[0]["_key_2"] == "" || strings.Join(got, "") != "12456789" || rows[0]["_key_2"] != "3" {
		t.Errorf("%v", rows[0])
	}
}

// wide tests that fields beyond the maximum number of columns, or beyond a row's size, go into _rest.
func wide(t *testing.T, p Place) {
	src := newSource()
	s := open(t, p)
	var members []string
	for n := range 2000 {
		members = append(members, fmt.Sprintf(`"f%04d":%d`, n, n))
	}
	src.put("a", "{"+strings.Join(members, ",")+"}")
	if err := src.bring(s, destination.Current); err != nil {
		t.Fatal(err)
	}
	row := p.Rows(t, "mail_items")[0]
	var rest map[string]int
	if err := json.Unmarshal([]byte(row["_rest"]), &rest); err != nil {
		t.Fatalf("%v in %q", err, row["_rest"])
	}
	for n := range 2000 {
		name := fmt.Sprintf("f%04d", n)
		in, more := rest[name]
		if column, ok := row[name]; ok == more || ok && column != fmt.Sprint(n) || more && in != n || n < 300 && !ok {
			t.Errorf("%s is %q in its column and %d in the rest", name, column, in)
		}
	}
}

// again tests that another connection by the same name, or another mode, starts from the beginning.
func again(t *testing.T, p Place) {
	src := newSource()
	s := open(t, p)
	src.put("a", `{"x":1}`)
	src.put("b", `{"x":2}`)
	if err := src.bring(s, destination.Current); err != nil {
		t.Fatal(err)
	}
	src.drop("a")
	if err := src.bring(s, destination.CurrentDeleted); err != nil {
		t.Fatal(err)
	}
	other := newSource()
	other.since = other.since.Add(time.Hour)
	other.put("c", `{"y":3}`)
	if err := other.bring(s, destination.Current); err != nil {
		t.Fatal(err)
	}
	check(t, p, other, destination.Current)
	if err := s.Describe(t.Context(),
		[]destination.Described{{StreamID: other.id, Connector: "c", Table: "mail_items", Records: 1, Mark: 1,
			SyncedAt: time.Now()}}); err != nil {
		t.Error(err)
	}
	holdings, err := s.Holdings(t.Context())
	if h := holdings[other.id]; err != nil || h.Mark != 1 || h.Table != "mail_items" ||
		len(h.Shape.Columns) != 1 && p.Marks == nil {
		t.Errorf("%+v %v", h, err)
	}
	if err := s.Clear(t.Context(), other.id); err != nil {
		t.Fatal(err)
	}
	if holdings, err := s.Holdings(t.Context()); err != nil || len(holdings) != 0 {
		t.Errorf("%+v %v", holdings, err)
	}
}
