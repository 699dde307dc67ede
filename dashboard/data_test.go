package dashboard_test

import (
	"encoding/csv"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// collect stores records of a stream as a run that stays active.
func (s *site) collect(lease store.Lease, stream store.Stream, records map[string]any) {
	s.t.Helper()
	batch := &store.Batch{}
	batch.Reset(stream)
	for key, v := range records {
		batch.Append(store.Change{Key: []byte(key), Data: data(v), EmittedAt: time.Now().UnixMicro()})
	}
	receipt, err := s.store.Submit(s.t.Context(), &store.Commit{Lease: lease, Batches: []*store.Batch{batch}})
	if err == nil {
		_, err = receipt.Result()
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// The page counts what there is and what came of late, by stream.
func TestDataCounts(t *testing.T) {
	s := open(t)
	if page := s.page("/ui/data"); !strings.Contains(page, "Nothing was collected yet") {
		t.Error("an empty host shows something")
	}
	s.host.connections = []host.Connection{{ConnectionID: "bank"}}
	lease := s.run("run_1", "bank")
	s.collect(lease, "notes", map[string]any{"a": map[string]int{"n": 1}, "b": map[string]int{"n": 2}})
	s.collect(lease, "notes", map[string]any{"a": map[string]int{"n": 3}})
	page := s.page("/ui/data")
	for _, want := range []string{"stream=notes", `data-label="Records">2<`, `data-label="Changes in 7 days">+3<`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// The files of a connection have a page, which the page of data leads to where there are some;
// whatever a file is called, it is a name.
func TestFilesPage(t *testing.T) {
	s := open(t)
	s.host.connections = []host.Connection{{ConnectionID: "bank"}}
	s.run("run_1", "bank")
	if page := s.page("/ui/data"); strings.Contains(page, "/ui/files") {
		t.Error("a connection without files has a link to them")
	}
	if page := s.page("/ui/files?connection=bank"); !strings.Contains(page, "No files") {
		t.Error("a connection without files has some")
	}
	s.host.file = store.HeldFile{Stream: "mails", Key: `a&b#"<`, Field: "document",
		File: store.File{Digest: store.Digest("sha256:" + strings.Repeat("0", 64)), Size: 7, MediaType: "application/pdf",
			Name: `"><script>alert(1)</script>.pdf`}}
	if page := s.page("/ui/data"); !strings.Contains(page, `href="/ui/files?connection=bank"`) {
		t.Error("nothing leads to the files")
	}
	page := s.page("/ui/files?connection=bank")
	for _, want := range []string{"&gt;&lt;script&gt;alert(1)", "key=a%26b%23%22%3c",
		`href="/v1/connections/bank/files/` + strings.Repeat("0", 64) + `" download`, "application/pdf"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s: %s", want, page)
		}
	}
	if strings.Contains(page, "<script>alert") {
		t.Error("a name is more than one")
	}
}

// A query goes to the host as it was typed; its result is shown, drawn and downloaded.
func TestSQL(t *testing.T) {
	s := open(t)
	s.host.result = host.QueryResult{Columns: []host.QueryColumn{{Name: "day"}, {Name: "n"}, {Name: "note"}},
		Rows: [][]json.RawMessage{{data("2026-01-01"), data(3), data("=1+1")}, {data("2026-01-02"), data(-5), data("<b>")},
			{data(nil), data(7), data(nil)}}}
	run := func(fields map[string][]string) string {
		t.Helper()
		a := s.post("/ui/data/sql", fields)
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return a.body
	}
	sql := "SELECT day, n, note FROM bank.notes WHERE note <> 'a b'"
	page := run(map[string][]string{"sql": {sql}})
	if got := s.host.queries[0]; got.SQL != sql || got.Only != nil {
		t.Errorf("asked %+v", got)
	}
	if !strings.Contains(page, "3 rows") || !strings.Contains(page, "&lt;b&gt;") || strings.Contains(page, "<svg") {
		t.Errorf("the result is %s", page)
	}
	for as, want := range map[string]string{"line": `class="line" d="M4 4L716 156"`,
		"dots": `class="dots" d="M2 4h4M714 156h4"`, "bars": "2026-01-01: 3"} {
		if page := run(map[string][]string{"sql": {sql}, "x": {"day"}, "y": {"n"}, "as": {as}}); !strings.Contains(page,
			want) {
			t.Errorf("as %s: %s", as, page)
		}
	}
	if page := run(map[string][]string{"sql": {sql}, "x": {"day"}, "y": {"note"}}); !strings.Contains(page,
		"There is nothing to draw") {
		t.Errorf("a plot of texts: %s", page)
	}
	a := s.get("/ui/data/sql/download?format=csv&sql=" + url.QueryEscape(sql))
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != 4 || rows[1][2] != "'=1+1" || rows[2][1] != "-5" ||
		!strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%v %v %v", rows, err, a.header)
	}
	a = s.get("/ui/data/sql/download?format=ndjson&sql=" + url.QueryEscape(sql))
	if want := `{"day":"2026-01-01","n":3,"note":"=1+1"}` + "\n"; !strings.HasPrefix(a.body, want) {
		t.Errorf("%s", a.body)
	}
	s.host.refuse = host.Refuse("query_denied", "a query may only read")
	if a := s.post("/ui/data/sql", map[string][]string{"sql": {"DROP TABLE x"}}); a.status != 422 && a.status != 403 &&
		a.status != 400 || !strings.Contains(a.body, "may only read") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Queries are saved under names that are slugs, and forgotten.
func TestSavedQueries(t *testing.T) {
	s := open(t)
	save := func(name, sql string) answer {
		return s.post("/ui/data/sql/save", map[string][]string{"name": {name}, "sql": {sql}})
	}
	for _, bad := range [][2]string{{"", "SELECT 1"}, {"../x", "SELECT 1"}, {"A b", "SELECT 1"}, {"ok", " "},
		{"ok", strings.Repeat("x", 100_001)}} {
		if a := save(bad[0], bad[1]); a.status != 400 {
			t.Errorf("%q: %d", bad[0], a.status)
		}
	}
	if a := save("mine", "SELECT '</textarea><b>'"); a.header.Get("HX-Redirect") != "/ui/data/sql?saved=mine" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if page := s.page("/ui/data/sql?saved=mine"); !strings.Contains(page, "SELECT &#39;&lt;/textarea&gt;&lt;b&gt;&#39;") ||
		!strings.Contains(page, "submit, load") {
		t.Error("a saved query is not shown, or does not run")
	}
	if page := s.page("/ui/data/sql?sql=SELECT+1"); !strings.Contains(page, ">SELECT 1<") ||
		strings.Contains(page, "submit, load") {
		t.Error("a query of an address is not shown, or runs by itself")
	}
	if a := s.post("/ui/data/sql/forget", map[string][]string{"name": {"mine"}}); a.header.Get("HX-Redirect") == "" ||
		strings.Contains(s.page("/ui/data/sql"), "saved=mine") {
		t.Error("it is not forgotten")
	}
}

// A destination is asked for as the form has it; its address stands in no answer.
func TestDestinationForm(t *testing.T) {
	s := open(t)
	a := s.post("/ui/data/destinations",
		map[string][]string{"name": {"dwh"}, "url": {"postgres://me:hunter2@db/x"}, "mode": {"history"},
			"connections": {"bank, mail"}, "flatten": {"true"}})
	if a.header.Get("HX-Refresh") != "true" || strings.Contains(a.body, "hunter2") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if q := s.host.added; q.Name != "dwh" || q.Mode != "history" || len(q.Connections) != 2 ||
		q.Connections[1] != "mail" || !q.Flatten || q.TakeOver {
		t.Errorf("asked for %+v", q)
	}
	if a := s.post("/ui/data/destinations", map[string][]string{"name": {"x"}}); a.status != 400 ||
		!strings.Contains(a.body, `"url"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	records := map[string]any{}
	for i := range 30 {
		records[strconv.Itoa(i)] = map[string]int{"n": i}
	}
	s.collect(s.run("run_1", "bank"), "notes", records)
	s.host.destinations = []host.Destination{{Name: "half",
		Tables: []host.DestinationStream{{ConnectionID: "bank", Stream: "notes", Version: 14, Behind: 16},
			{ConnectionID: "bank", Stream: "gone", Behind: 7}}}}
	if page := s.page("/ui/data/destinations"); !strings.Contains(page, ": 14 rows</title>") ||
		strings.Count(page, ": 0 rows</title>") != 13 || !strings.Contains(page, "<dt>Waiting since</dt>") {
		t.Errorf("of 30 records of today 14 are there: %s", page)
	}
	s.host.destinations = []host.Destination{{Name: "dwh", Kind: "postgres", URL: "postgres://db/x", Behind: 1234,
		Error: "the server <b> is away"}}
	if page := s.page("/ui/data/destinations"); !strings.Contains(page, "1\u202f234 changes") ||
		!strings.Contains(page, "&lt;b&gt; is away") || !strings.Contains(page, "webhook:https://") {
		t.Error("lag or error are not shown")
	}
	s.host.destinations[0].Tables = []host.DestinationStream{{ConnectionID: "bank", Stream: "a", Error: "first <b>"},
		{ConnectionID: "bank", Stream: "b", Table: "bank_b"}, {ConnectionID: "bank", Stream: "c", Table: "bank_c", Error: "second"}}
	if page := s.page("/ui/data/destinations"); !strings.Contains(page, "first &lt;b&gt;</bdi></li>") ||
		!strings.Contains(page, "second</bdi></li>") || !strings.Contains(page, "<summary>2 tables</summary>") {
		t.Errorf("not each stream that is blocked says why: %s", page)
	}
}
