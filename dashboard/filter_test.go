package dashboard_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
)

// Filters become a condition over the column of their name, each by its type; what cannot be
// meant is left out and said, and nothing leaves its quotes.
func TestFilters(t *testing.T) {
	s := open(t)
	s.host.connections = []host.Connection{{ConnectionID: "bank"}}
	s.collect(s.run("run_1", "bank"), "notes", map[string]any{"a": map[string]int{"n": 1}, "b": map[string]int{"n": 2}})
	s.host.tables = []host.Table{{Name: `bank.notes`, ConnectionID: "bank", Stream: "notes", Columns: []host.QueryColumn{
		{Name: "n", Type: "integer"}, {Name: "at", Type: "time"}, {Name: "on", Type: "boolean"},
		{Name: `a"b`, Type: "text"}}}}
	s.host.result = host.QueryResult{Columns: []host.QueryColumn{{Name: "x"}}, Rows: [][]json.RawMessage{{data("a")}}}
	for _, x := range []struct{ query, where, wrong string }{
		{"min.n=2&max.n=3.5", `WHERE "n" >= 2 AND "n" <= 3.5`, ""},
		{"min.n=2+OR+1", "", "it is a number"},
		{"min.n=Inf", "", "it is a number"},
		{"min.at=2026-01-31&max.at=2026-01-31", `WHERE "at" >= '2026-01-31' AND "at" < '2026-02-01'`, ""},
		{"min.at=yesterday", "", "it is a day"},
		{"is.on=true", `WHERE "on" = 1`, ""},
		{"is.on=1)", "", "it is true or false"},
		{"is." + url.QueryEscape(`a"b`) + "=" + url.QueryEscape(`x' OR 1=1 --`),
			`WHERE instr(lower(CAST("a""b" AS TEXT)), lower('x'' OR 1=1 --')) > 0`, ""},
		{"is.none=x", "", "there is no such field"},
		{"min._committed_at=2026-01-31", `WHERE "_committed_at" >= '2026-01-31'`, ""},
	} {
		s.host.queries = nil
		page := s.page("/ui/records?connection=bank&stream=notes&" + x.query)
		want := "SELECT _key FROM bank.notes"
		if x.where != "" {
			want += " " + x.where
		}
		want += " ORDER BY _version DESC LIMIT 1001 OFFSET 0"
		if !slices.ContainsFunc(s.host.queries, func(q host.Query) bool { return q.SQL == want }) {
			t.Errorf("%s asked %+v, want %s", x.query, s.host.queries, want)
		}
		if !strings.Contains(page, x.wrong) || (x.wrong == "") == strings.Contains(page, "was left out") {
			t.Errorf("%s: the page does not say %q", x.query, x.wrong)
		}
		if !strings.Contains(page, "key=a&") && !strings.Contains(page, "key=a\"") {
			t.Errorf("%s: the record is not shown", x.query)
		}
	}
	for _, x := range []struct {
		skip, rows int
		want, sql  string
	}{
		{0, 1, "1 of ", "LIMIT 1001 OFFSET 0"}, {0, 1000, "1\u202f000 of ", "LIMIT 1001 OFFSET 0"},
		{50, 1001, "More than 1\u202f000 of ", "LIMIT 1001 OFFSET 0"}, {950, 951, "951 of ", "LIMIT 1001 OFFSET 0"},
		{951, 3, "954 of ", "LIMIT 51 OFFSET 951"}, {5000, 1, "More than 1\u202f000 of ", "LIMIT 51 OFFSET 5000"},
		{5000, 0, "0 of ", "LIMIT 51 OFFSET 5000"},
	} {
		s.host.queries, s.host.result.Rows = nil, slices.Repeat([][]json.RawMessage{{data("b")}}, x.rows)
		page := s.page(fmt.Sprintf("/ui/records?connection=bank&stream=notes&min.n=1&after=%d", x.skip))
		if len(s.host.queries) != 1 || !strings.HasSuffix(s.host.queries[0].SQL, x.sql) {
			t.Errorf("%+v asked %+v", x, s.host.queries)
		}
		if !strings.Contains(page, ">"+x.want) && !strings.Contains(page, " "+x.want) &&
			!strings.Contains(page, "\n"+x.want) {
			t.Errorf("%+v: the page does not say it", x)
		}
		if shown := strings.Count(page, "key=b&"); x.skip > 0 && x.rows > x.skip && shown > 2*(x.rows-x.skip) {
			t.Errorf("%+v: %d records are shown", x, shown)
		}
	}
	for _, bad := range []string{"is.n=" + strings.Repeat("x", 300), "is." + strings.Repeat("x", 200) + "=1",
		"is.n=%00", "is.n=%ff"} {
		if a := s.get("/ui/records?connection=bank&stream=notes&" + bad); a.status != 400 {
			t.Errorf("%.40s: %d", bad, a.status)
		}
	}
}

// The histogram has a bar for each span of days, which leads to its records.
func TestHistogram(t *testing.T) {
	s := open(t)
	s.host.connections = []host.Connection{{ConnectionID: "bank"}}
	s.host.tables = []host.Table{{Name: "bank.notes", ConnectionID: "bank", Stream: "notes",
		Columns: []host.QueryColumn{{Name: "at", Type: "time"}}}}
	s.host.result = host.QueryResult{Columns: []host.QueryColumn{{Name: "day"}, {Name: "n"}}, Rows: [][]json.RawMessage{
		{data("2026-01-01"), data(3)}, {data("2026-01-03"), data(7)}, {data("<script>"), data(1)}, {data(nil), data(2)}}}
	part := s.page("/ui/data/filters?connection=bank&stream=notes&by=at&min.at=2025-01-01")
	for _, want := range []string{"3 records, 1 Jan 2026", "0 records, 2 Jan 2026", "7 records, 3 Jan 2026",
		"max.at=2026-01-01", `name="min.at" value="2025-01-01"`} {
		if !strings.Contains(part, want) {
			t.Errorf("the part lacks %s: %s", want, part)
		}
	}
	if n := strings.Count(part, `class="accent"`); n != 3 {
		t.Errorf("%d bars", n)
	}
}

// TestDrawerOfAnyKey: a key that an address would be cut at leads to its record.
func TestDrawerOfAnyKey(t *testing.T) {
	s := open(t)
	s.host.connections = []host.Connection{{ConnectionID: "bank"}}
	key := `a&b=c#d?e+f%41 <">`
	s.collect(s.run("run_1", "bank"), "notes", map[string]any{key: map[string]int{"n": 4711}})
	m := regexp.MustCompile(`data-drawer="([^"]+)"`).FindStringSubmatch(s.page("/ui/records?connection=bank&stream=notes"))
	if m == nil {
		t.Fatal("there is no drawer")
	}
	if a := s.get(html.UnescapeString(m[1])); a.status != 200 || !strings.Contains(a.body, "4711") {
		t.Errorf("%s: %d", m[1], a.status)
	}
}

// TestFindInWide: a text is looked for in a table of many columns within the calls that a
// statement may have.
func TestFindInWide(t *testing.T) {
	s := open(t)
	s.host.connections = []host.Connection{{ConnectionID: "bank"}}
	s.collect(s.run("run_1", "bank"), "notes", map[string]any{"a": map[string]int{"n": 1}})
	table := host.Table{Name: `bank.notes`, ConnectionID: "bank", Stream: "notes"}
	query := "/ui/records?connection=bank&stream=notes&find=x"
	for i := range 200 {
		table.Columns = append(table.Columns, host.QueryColumn{Name: fmt.Sprint("c", i), Type: "text"})
		if i < 72 {
			query += fmt.Sprintf("&is.c%d=x", i)
		}
	}
	s.host.tables = []host.Table{table}
	s.page(query)
	sql, calls := s.host.queries[0].SQL, 0
	for _, f := range []string{"instr(", "lower(", "concat_ws(", "char("} {
		calls += strings.Count(sql, f)
	}
	if calls < 3*72 || calls > 250 { // maxCalls of host/query
		t.Errorf("functions are called %d times: %s", calls, sql)
	}
}
