package assistant_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host"
)

// What differs between two answers that tell the same: times of commits, marks and cursors,
// of which the length is the same.
var (
	moments = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	marks   = regexp.MustCompile(`foreign-[a-z0-9]{12}`)
	cursors = regexp.MustCompile(`(cursor\\*":\\*")([A-Za-z0-9_-]+)`)
)

func plain(answer string) string {
	answer = marks.ReplaceAllString(moments.ReplaceAllString(answer, "TIME"), "MARK")
	return cursors.ReplaceAllStringFunc(answer, func(s string) string {
		m := cursors.FindStringSubmatch(s)
		return fmt.Sprint(m[1], len(m[2]))
	})
}

// TestNothingShows: an assistant gets the same answers from two hosts that differ in what it
// may not see: no count, number, place, rank, size or freshness tells of it.
func TestNothingShows(t *testing.T) {
	seen := []string{
		`a {"id":"a","folder":"work","subject":"quarterly budget","at":"2026-03-01T00:00:00Z"}`,
		`d {"id":"d","folder":"work","subject":"budget of lunch, budget of dinner","at":"2026-03-03T00:00:00Z"}`,
		`e {"id":"e","folder":"work","subject":"lunch","at":"2026-03-04T00:00:00Z"}`,
	}
	hidden := func(w *world, n int) {
		for i := range n {
			w.collect("mail", "messages",
				fmt.Sprintf(`h%d {"id":"h%d","folder":"home","subject":"budget lunch %s","extra":{"x":%d},"at":"2026-03-02T00:00:00Z"}`, i, i, strings.Repeat("budget ", i), i))
			w.collect("mail", "private", fmt.Sprintf(`p%d {"id":"p%d","text":"budget"}`, i, i))
		}
		w.collect("bank", "messages", `z {"id":"z"}`)
	}
	worlds := []*world{emptyWorld(t), emptyWorld(t)}
	ask := func(step string) {
		t.Helper()
		var answers [2][]string
		for i, w := range worlds {
			s := w.connect("notes")
			stream := object{"connection": "mail", "stream": "messages"}
			first := object{"connection": "mail", "stream": "messages", "limit": 1}
			for _, c := range []struct {
				tool string
				args object
			}{
				{"data", object{}}, {"search", object{"words": "budget"}}, {"search", object{"words": "lunch", "limit": 1}},
				{"search", object{"words": "bud* -dinner"}}, {"list_records", stream}, {"list_records", first},
				{"changes_since", stream}, {"changes_since", first},
				{"get_record", object{"connection": "mail", "stream": "messages", "key": "h1"}},
				{"get_record", object{"connection": "mail", "stream": "messages", "key": "nowhere"}},
				{"get_record", object{"connection": "mail", "stream": "messages", "key": "a"}},
				{"list_records", object{"connection": "mail", "stream": "private"}},
				{"list_records", object{"connection": "bank", "stream": "messages"}},
				{"run_connection", object{"connection": "bank"}},
			} {
				text, _ := w.call(s, c.tool, c.args)
				answers[i] = append(answers[i], fmt.Sprintf("%s %v: %s", c.tool, c.args, plain(text)))
			}
			for _, sql := range []string{
				`SELECT * FROM mail.messages ORDER BY _key`,
				`SELECT rowid, max(rowid) OVER (), sum(_version) OVER (), _key FROM mail.messages`,
				`SELECT * FROM mail.sqlite_schema, (SELECT count(*) FROM mail.messages)`,
				`SELECT sqlite_offset(subject) FROM mail.messages`, `SELECT * FROM dbstat('mail')`,
				`SELECT * FROM mail.sqlite_stat1`, `SELECT * FROM mail.sqlite_sequence`, `SELECT data FROM sqlite_dbpage('mail')`,
				`PRAGMA mail.page_count`, `SELECT * FROM pragma_page_count('mail')`, `SELECT * FROM mail._sluice_meta`,
				`SELECT total_changes(), changes(), last_insert_rowid() FROM mail.messages`, `EXPLAIN SELECT * FROM mail.messages`,
				`EXPLAIN QUERY PLAN SELECT * FROM mail.messages WHERE _key > 'a'`, `SELECT * FROM mail.private`,
				`SELECT * FROM bank.messages`, `SELECT * FROM nowhere.messages`,
			} {
				text, _ := w.call(s, "query", object{"sql": sql})
				answers[i] = append(answers[i], sql+": "+strings.ReplaceAll(plain(text), "nowhere", "bank"))
			}
		}
		if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
			t.Errorf("%s: %s", step, diff)
		}
	}
	hidden(worlds[1], 7)
	for _, w := range worlds {
		// a stream that holds nothing that is seen
		w.collect("mail", "messages", `x {"id":"x","folder":"home","at":"2026-03-02T00:00:00Z"}`)
		w.add("notes", func(q *host.NewAssistant) {
			q.Connections[0].Scope = []byte(`{"streams":[{"name":"messages","resources":["work"]}]}`)
		})
	}
	ask("before anything is seen")
	for _, w := range worlds {
		w.collect("mail", "messages", seen...)
	}
	hidden(worlds[1], 20)
	ask("with records beside")
	for _, w := range worlds {
		w.collect("mail", "messages", `e`, `a {"id":"a","folder":"work","subject":"lunch","at":"2026-03-05T00:00:00Z"}`)
	}
	hidden(worlds[1], 3)
	worlds[1].collect("mail", "messages", `h5`, `h6 {"id":"h6","folder":"home"}`)
	ask("after changes")
}

// TestCursors: a cursor is another text each time, and is for one assistant, list and stream.
func TestCursors(t *testing.T) {
	w := newWorld(t)
	w.add("notes")
	w.add("others")
	s := w.connect("notes")
	stream := object{"connection": "mail", "stream": "messages", "limit": 1}
	var one, two, list found
	w.structured(s, "changes_since", stream, &one)
	w.structured(s, "changes_since", stream, &two)
	w.structured(s, "list_records", stream, &list)
	if one.Cursor == "" || one.Cursor == two.Cursor || len(one.Cursor) != len(two.Cursor) || list.Cursor == "" {
		t.Fatalf("%q %q %q", one.Cursor, two.Cursor, list.Cursor)
	}
	with := func(cursor string) object {
		return object{"connection": "mail", "stream": "messages", "cursor": cursor}
	}
	for _, cursor := range []string{list.Cursor, "1", "0", "AAAA", one.Cursor + "A", one.Cursor[1:], "A" + one.Cursor[1:],
		strings.Repeat("A", 1000), " " + one.Cursor} {
		if text, ok := w.call(s, "changes_since", with(cursor)); ok && cursor != one.Cursor ||
			!strings.Contains(text, "an earlier answer") {
			t.Errorf("%q: %s", cursor, text)
		}
	}
	if text, ok := w.call(w.connect("others"), "changes_since", with(one.Cursor)); ok {
		t.Errorf("another assistant: %s", text)
	}
	w.gateway.CloseAssistants()
	w.must(w.open())
	var after found
	w.structured(w.connect("notes"), "changes_since", with(one.Cursor), &after)
	if diff := cmp.Diff([]string{"d"}, after.keys()); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
}

// TestRanked: what fits best is first, whatever the case, the accents and the writing.
func TestRanked(t *testing.T) {
	w := emptyWorld(t)
	w.collect("mail", "messages",
		`1 {"id":"1","folder":"work","subject":"Übergabe an Zoë, and much else that says little of it at all in a long text","at":"2026-03-01T00:00:00Z"}`,
		`2 {"id":"2","folder":"work","subject":"Ubergabe","at":"2026-03-01T00:00:00Z"}`,
		`3 {"id":"3","folder":"work","subject":"会議の議事録","at":"2026-03-01T00:00:00Z"}`)
	w.add("notes")
	s := w.connect("notes")
	for words, want := range map[string][]string{"übergabe": {"2", "1"}, "zoe": {"1"}, "議事": {"3"}, `"an zoe"`: {"1"},
		"überg* -zoe": {"2"}, "nothing": nil} {
		var f struct {
			Records []struct{ Key, Snippet string }
		}
		w.structured(s, "search", object{"words": words}, &f)
		var keys []string
		for _, r := range f.Records {
			if keys = append(keys, r.Key); r.Snippet == "" {
				t.Errorf("%s: no snippet of %s", words, r.Key)
			}
		}
		if diff := cmp.Diff(want, keys); diff != "" {
			t.Errorf("%s: %s", words, diff)
		}
	}
}
