package query_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/query"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// A world has a store with some connections, and a mirror of it.
type world struct {
	*testing.T
	store  store.Store
	mirror *query.Mirror
	dir    string
	n      int
}

func newWorld(t *testing.T) *world {
	st, err := badger.Open(t.TempDir(), badger.Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{T: t, store: st, dir: filepath.Join(t.TempDir(), "mirror")}
	w.mirror = query.New(query.Options{Store: st, Dir: w.dir})
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// collect commits records of one stream, in a run of its own.
func (w *world) collect(c store.ConnectionID, stream store.Stream, data ...string) {
	w.Helper()
	w.n++
	if _, err := w.store.Connection(w.Context(), c); errors.Is(err, store.ErrNotFound) {
		w.must(w.store.PutConnection(w.Context(), store.Connection{ID: c, CreatedAt: time.Unix(1_700_000_000, 0)}))
	}
	run := store.Run{ID: store.RunID(fmt.Sprintf("run_%026d", w.n)), ConnectionID: c, Status: "active",
		StartedAt: time.Now()}
	lease, err := w.store.Acquire(w.Context(), run, "host", "boot", time.Hour)
	w.must(err)
	b := &store.Batch{Stream: stream}
	for _, d := range data {
		key, text, _ := strings.Cut(d, " ")
		change := store.Change{Key: []byte(key), Data: []byte(text), EmittedAt: time.Now().UnixMicro()}
		if text == "" {
			change.Op = store.Delete
		}
		b.Append(change)
	}
	now := time.Now()
	over := run
	over.Status, over.FinishedAt = "succeeded", &now
	r, err := w.store.Submit(w.Context(), &store.Commit{Lease: lease, Batches: []*store.Batch{b}, Run: &over, End: true,
		Events: []store.Event{{ID: store.EventID(fmt.Sprintf("evt_%016d", w.n)), Type: "run.completed", RunID: run.ID,
			ConnectionID: c, OccurredAt: now, Data: json.RawMessage(`{}`)}}})
	w.must(err)
	<-r.Done()
	_, err = r.Result()
	w.must(err)
}

// ask runs a query that succeeds, and returns its rows as text.
func (w *world) ask(sql string) string {
	w.Helper()
	r, err := w.mirror.Query(w.Context(), host.Query{SQL: sql})
	if err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	b, err := json.Marshal(r.Rows)
	w.must(err)
	return string(b)
}

func (w *world) equal(sql, want string) {
	w.Helper()
	if got := w.ask(sql); got != want {
		w.Errorf("%s: %s, want %s", sql, got, want)
	}
}

// refused runs a query that must not, and returns the code.
func (w *world) refused(q host.Query) string {
	w.Helper()
	_, err := w.mirror.Query(w.Context(), q)
	var r *host.Refusal
	if !errors.As(err, &r) {
		w.Errorf("%s: %v", q.SQL, err)
		return ""
	}
	return r.Code
}

// TestQuery: joins, functions, changes and deletions, and a damaged copy.
func TestQuery(t *testing.T) {
	w := newWorld(t)
	w.collect("mail", "messages", `a {"id":"a","from":"ann","size":3,"at":"2026-01-02T03:04:05Z","seen":true}`,
		`b {"id":"b","from":"bob","size":4}`)
	w.collect("my-git", "select", `1 {"author":"ann","files":["x","y"]}`)
	w.equal(`SELECT count(*), sum(size) FROM mail.messages`, `[[2,7]]`)
	w.equal(`SELECT m."from", json_array_length(g.files), m.seen, strftime('%Y', m.at) FROM mail.messages m JOIN "my-git"."select" g ON g.author = m."from"`, `[["ann",2,true,"2026"]]`)
	w.equal(`WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5) SELECT sum(x) FROM n`, `[[15]]`)
	w.collect("mail", "messages", `a `, `c {"id":"c","size":"large"}`)
	w.equal(`SELECT id, size FROM mail.messages ORDER BY id`, `[["b","4"],["c","large"]]`)
	w.must(os.WriteFile(filepath.Join(w.dir, "mail.db"), []byte(strings.Repeat("garbage ", 1000)), 0o600))
	w.equal(`SELECT count(*) FROM mail.messages`, `[[2]]`)
	w.must(os.RemoveAll(w.dir))
	w.equal(`SELECT count(*) FROM mail.messages`, `[[2]]`)
	r, err := w.mirror.Query(t.Context(), host.Query{SQL: "SELECT id FROM mail.messages", Rows: 1})
	if err != nil || !r.Truncated || len(r.Rows) != 1 || r.Columns[0].Type != "text" {
		t.Errorf("%+v %v", r, err)
	}
	tables, err := w.mirror.Tables(t.Context(), nil)
	if err != nil || len(tables) != 2 || tables[1].Name != `"my-git"."select"` || tables[0].Records != 2 ||
		len(tables[0].Columns) == 0 {
		t.Errorf("%+v %v", tables, err)
	}
	if tables, err = w.mirror.Tables(t.Context(), []store.ConnectionID{"mail"}); err != nil || len(tables) != 1 {
		t.Errorf("%+v %v", tables, err)
	}
	w.must(w.store.DeleteConnection(t.Context(), "mail", true))
	w.must(w.mirror.Forget("mail"))
	if code := w.refused(host.Query{SQL: "SELECT * FROM mail.messages"}); code != "query_invalid" {
		t.Errorf("after it was erased: %s", code)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "mail.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy of an erased connection: %v", err)
	}
}

// TestHostile: nothing but reading passes, within bounds, and of what may be seen.
func TestHostile(t *testing.T) {
	w := newWorld(t)
	w.collect("mail", "messages", `a {"id":"a"}`)
	w.collect("other", "things", `a {"id":"secret"}`)
	out := filepath.Join(t.TempDir(), "out.db")
	for _, sql := range []string{
		`INSERT INTO mail.messages (_key) VALUES ('x')`, `UPDATE mail.messages SET id = 1`, `DELETE FROM mail.messages`,
		`DROP TABLE mail.messages`, `CREATE TABLE t (x)`, `CREATE TEMP TABLE t AS SELECT 1`, `ATTACH '` + out + `' AS x`,
		`DETACH mail`, `VACUUM INTO '` + out + `'`, `PRAGMA journal_mode`, `SELECT * FROM pragma_database_list`,
		`SELECT load_extension('x')`, `SELECT writefile('` + out + `', 'x')`, `SELECT readfile('/etc/passwd')`, `BEGIN`,
		`EXPLAIN DELETE FROM mail.messages`, `SELECT * FROM mail._sluice_meta`, `REINDEX`, `ANALYZE`,
		`CREATE VIEW v AS SELECT 1`, `INSERT INTO mail.messages (_key) SELECT 'x' RETURNING *`,
		`WITH x AS (SELECT 1) DELETE FROM mail.messages RETURNING *`,
		`WITH x AS (INSERT INTO mail.messages (_key) VALUES (1) RETURNING _key) SELECT * FROM x`,
		`SELECT * FROM (DELETE FROM mail.messages RETURNING *)`, `ATTACH ':memory:' AS 'mail2'`,
		`PRAGMA writable_schema = ON`, `PRAGMA query_only = OFF`, `SELECT * FROM pragma_table_info('messages')`,
		`SELECT load_extension('/tmp/x.so', 'f')`, `EXPLAIN ATTACH 'x' AS y`,
		`SELECT * FROM mail.sqlite_schema, (SELECT writefile('` + out + `', sql))`, `SELECT json_patch('{}', '{}')`,
		`SAVEPOINT x`, `REPLACE INTO mail.messages (_key) VALUES (1)`, `SELECT * FROM fsdir('/')`,
		`CREATE VIRTUAL TABLE v USING csv(filename='/etc/passwd')`,
	} {
		if code := w.refused(host.Query{SQL: sql}); code != "query_denied" && code != "query_invalid" {
			t.Errorf("%s: %s", sql, code)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a query made a file")
	}
	for sql, want := range map[string]string{
		`SELECT 1; SELECT 2`: "query_invalid", `-- nothing`: "query_invalid", ``: "validation_error",
		`SELEKT`: "query_invalid", `SELECT * FROM mail.none`: "query_invalid",
		`SELECT nothing FROM mail.messages`: "query_invalid", `SELECT * FROM "../etc".passwd`: "query_invalid",
		`SELECT zeroblob(1000000000)`: "query_limit", `SELECT hex(zeroblob(30000000))`: "query_limit",
		`SELECT randomblob(1000000000)`: "query_limit", `SELECT printf('%*c', 1000000000, 'x')`: "query_limit",
		`SELECT format('%.*c', 40000000, 'x')`:               "query_limit",
		`SELECT replace(hex(zeroblob(900000)), '0', 'xxxx')`: "query_limit",
		`SELECT group_concat(hex(zeroblob(1000000)), '') FROM (WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100) SELECT x FROM n)`: "query_limit", `SELECT 'a' LIKE '` + strings.Repeat("%a", 1000) + `'`: "query_invalid", `SELECT 'a' GLOB '` + strings.Repeat("*a", 1000) + `'`: "query_invalid", `SELECT 'a' LIKE 'b' ESCAPE 'cd'`: "query_invalid", `SELECT like('a')`: "query_invalid", `SELECT json_pretty('[1]', 'x')`: "query_denied",
		`SELECT ` + strings.Repeat("upper('a'), ", 250) +
			"upper('a')": "query_denied",
		`WITH RECURSIVE n(x) AS (SELECT '[' UNION ALL SELECT x || x FROM n) SELECT max(json_valid(x)) FROM n`:  "query_limit",
		`SELECT json_group_array(hex(zeroblob(100000))) FROM json_each('[` + strings.Repeat("1,", 50) + `1]')`: "query_limit",
		`SELECT json_extract('` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) +
			`', '$')`: "query_invalid",
		`SELECT json_each(1)`: "query_invalid", `SELECT * FROM json_each('` + strings.Repeat("[", 1001) +
			`')`: "query_invalid",
		`SELECT * FROM mail.messages WHERE id REGEXP '(a+)+$'`: "query_denied", `SELECT regexpi('a', 'a')`: "query_denied",
		`SELECT decimal_mul('1', '1')`: "query_denied", `SELECT decimal_pow2(1)`: "query_denied",
		`SELECT sqlite_log(1, 'x')`: "query_denied", `SELECT sqlite_offset(id) FROM mail.messages`: "query_invalid",
		`SELECT * FROM mail.messages WHERE id MATCH 'a'`:             "query_denied",
		`INSERT INTO mail.messages(messages) VALUES ('rebuild')`:     "query_denied",
		`CREATE VIRTUAL TABLE temp.x USING fts5(a)`:                  "query_denied",
		`CREATE VIRTUAL TABLE mail.x USING fts5vocab(messages, row)`: "query_denied", `SELECT fts5(NULL)`: "query_invalid",
		`SELECT * FROM sqlite_dbpage`: "query_invalid", `SELECT * FROM dbstat`: "query_invalid",
		`SELECT * FROM bytecode('SELECT 1')`: "query_invalid", `SELECT * FROM pragma_integrity_check`: "query_denied",
		`PRAGMA mail.cache_size = 1000000000`: "query_denied", `PRAGMA temp_store_directory = '/'`: "query_denied",
		`PRAGMA mmap_size = 1`: "query_denied", `PRAGMA hard_heap_limit = 0`: "query_denied", `VACUUM`: "query_denied",
		`VACUUM mail INTO 'x'`: "query_denied", `UPDATE mail.sqlite_schema SET sql = 'x'`: "query_invalid",
		`DROP TABLE mail.sqlite_schema`: "query_denied", `ALTER TABLE mail.messages RENAME TO x`: "query_denied",
		`CREATE TRIGGER mail.t AFTER INSERT ON messages BEGIN SELECT 1; END`: "query_denied",
		`SELECT trim('a', hex(zeroblob(10000)))`:                             "query_invalid",
		`SELECT ` + strings.Repeat("NOT ", 300) + "1":                        "query_invalid",
		`SELECT 1` + strings.Repeat(" UNION SELECT 1", 60):                   "query_invalid",
	} {
		if code := w.refused(host.Query{SQL: sql}); code != want {
			t.Errorf("%s: %s, want %s", sql, code, want)
		}
	}
	w.equal(`SELECT count(*) FROM mail.messages`, `[[1]]`)
	for _, sql := range []string{`SELECT * FROM other.things`, `SELECT * FROM mail.messages, other.things`,
		`SELECT (SELECT id FROM other.things)`} {
		if code := w.refused(host.Query{SQL: sql, Only: []store.ConnectionID{"mail"}}); code != "query_invalid" {
			t.Errorf("%s under mail alone: %s", sql, code)
		}
	}
}

// TestEndless: a query that does not end is ended.
func TestEndless(t *testing.T) {
	w := newWorld(t)
	w.mirror.Within(200 * time.Millisecond)
	for _, sql := range []string{
		`WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n`,
		`WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x < 0`,
		// One call each, in which nothing but the function itself looks at the time.
		`WITH b(x) AS MATERIALIZED (SELECT hex(zeroblob(1000000))) SELECT ` +
			strings.TrimSuffix(strings.Repeat(`x LIKE '%'||'`+strings.Repeat("0_", 80)+`1', `, 100), ", ") + ` FROM b`,
		`WITH b(x) AS MATERIALIZED (SELECT hex(zeroblob(1000000))) SELECT ` +
			strings.TrimSuffix(strings.Repeat(`x GLOB '*'||'`+strings.Repeat("0?", 80)+`1', `, 100), ", ") + ` FROM b`,
	} {
		if code := w.refused(host.Query{SQL: sql}); code != "query_limit" {
			t.Errorf("%s: %s", sql, code)
		}
	}
	if code := w.refused(host.Query{SQL: `WITH RECURSIVE n(x) AS (SELECT zeroblob(1000000) UNION ALL SELECT zeroblob(1000000) FROM n) SELECT count(*) FROM (SELECT * FROM n ORDER BY 1)`}); code != "query_limit" {
		t.Errorf("memory: %s", code)
	}
}

// TestQuadratic: what would take hours within one call, where nothing can interrupt it, is
// done at once, and does what SQLite does.
func TestQuadratic(t *testing.T) {
	w := newWorld(t)
	w.equal(`SELECT instr(hex(zeroblob(1000000)), hex(zeroblob(900000)) || '1')`, `[[0]]`)
	w.equal(`SELECT length(replace(hex(zeroblob(1000000)), hex(zeroblob(900000)) || '1', ''))`, `[[2000000]]`)
	w.equal(`SELECT instr('größer', 'ß'), instr('a', ''), instr(NULL, 'a'), instr(1234, 3), instr(x'c3b61f', x'1f'), instr('a', 'b')`, `[[4,1,null,3,3,0]]`)
	w.equal(`SELECT replace('aXbX', 'X', '--'), replace('a', '', 'b'), replace('a', NULL, 'b'), replace(1221, 2, 'x')`,
		`[["a--b--","a",null,"1xx1"]]`)
	w.equal(`SELECT trim('xyaxy', 'yx'), ltrim('ßßa', 'ß'), rtrim('a..', '.'), trim('  a '), trim(NULL, 'x')`,
		`[["a","a","a","a",null]]`)
}

// TestScratch: what does not fit into memory is sorted on the disk, within bounds, and leaves
// nothing there.
func TestScratch(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	w := newWorld(t)
	w.mirror.Scratch(8 << 20)
	const rows = `(WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < %d) SELECT hex(randomblob(5000)) b FROM n)`
	w.equal(fmt.Sprintf(`SELECT count(*), count(DISTINCT b) FROM (SELECT b FROM `+rows+` ORDER BY b)`, 400), `[[400,400]]`)
	_, err := w.mirror.Query(t.Context(),
		host.Query{SQL: fmt.Sprintf(`SELECT length(max(b)) FROM (SELECT b FROM `+rows+` ORDER BY b LIMIT -1 OFFSET 1)`,
			10_000)})
	var r *host.Refusal
	if !errors.As(err, &r) || r.Code != "query_limit" || !strings.Contains(r.Message, "8 MiB") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}

// TestBound: copies take no more of the disk than they may, and what is too large says what to
// do, also again, and is brought in when there is more room.
func TestBound(t *testing.T) {
	w := newWorld(t)
	text := strings.Repeat("x", 100_000)
	for _, c := range []store.ConnectionID{"a", "b", "c"} {
		w.collect(c, "s", `1 {"t":"`+text+`"}`)
	}
	w.collect("large", "s", `1 {"t":"`+strings.Repeat(text, 5)+`"}`)
	open := func(most int64) {
		w.mirror = query.New(query.Options{Store: w.store, Dir: w.dir, Most: most, Setting: "copies.query_bytes"})
	}
	open(400_000)
	for _, c := range []string{"a", "b", "a", "c"} {
		w.equal(`SELECT count(*) FROM `+c+`.s`, `[[1]]`)
	}
	for name, want := range map[string]bool{"a.db": true, "b.db": false, "c.db": true} {
		if _, err := os.Stat(filepath.Join(w.dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.equal(`SELECT count(*) FROM b.s, c.s`, `[[1]]`)
	for range 2 {
		_, err := w.mirror.Query(t.Context(), host.Query{SQL: `SELECT count(*) FROM large.s`})
		var r *host.Refusal
		if !errors.As(err, &r) || r.Code != "query_limit" || !strings.Contains(r.Message, "copies.query_bytes") {
			t.Errorf("%v", err)
		}
	}
	open(4_000_000)
	w.equal(`SELECT length(t) FROM large.s`, `[[500000]]`)
}

// A watched store calls look before each page of records.
type watched struct {
	store.Store
	look func()
}

func (s watched) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	s.look()
	return s.Store.Records(ctx, q)
}

// TestCopying: while a connection is copied, those who may see it are told how far that is.
func TestCopying(t *testing.T) {
	w := newWorld(t)
	w.collect("mail", "messages", `a {"id":"a"}`, `b {"id":"b"}`)
	var all, none []host.Copying
	w.mirror = query.New(query.Options{Dir: w.dir, Store: watched{w.store, func() {
		var err error
		all, err = w.mirror.Copying(t.Context(), nil)
		w.must(err)
		none, err = w.mirror.Copying(t.Context(), []store.ConnectionID{"other"})
		w.must(err)
	}}})
	w.equal(`SELECT count(*) FROM mail.messages`, `[[2]]`)
	if len(all) != 1 || all[0] != (host.Copying{ConnectionID: "mail", Total: 2}) || len(none) != 0 {
		t.Errorf("%+v %+v", all, none)
	}
	w.collect("mail", "messages", `b {"id":"c"}`)
	w.equal(`SELECT count(*) FROM mail.messages`, `[[2]]`)
	if len(all) != 1 || all[0].Total != 1 {
		t.Errorf("%+v", all)
	}
	if all, err := w.mirror.Copying(t.Context(), nil); err != nil || len(all) != 0 {
		t.Errorf("%+v %v", all, err)
	}
}

// TestAtOnce asks while records come and copies are opened, fed and closed: who reads a copy
// waits for who feeds it.
func TestAtOnce(t *testing.T) {
	w := newWorld(t)
	w.collect("mail", "messages", `a {"id":"a"}`)
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for i := range 8 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var err error
				if i%2 == 0 {
					_, err = w.mirror.Tables(t.Context(), nil)
				} else {
					_, err = w.mirror.Query(t.Context(), host.Query{SQL: "SELECT count(*) FROM mail.messages"})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 40 {
		w.collect("mail", "messages", fmt.Sprintf(`%d {"id":"%d"}`, i, i))
		w.equal("SELECT count(*) FROM mail.messages", fmt.Sprintf("[[%d]]", i+2))
	}
	close(stop)
	asking.Wait()
}

// TestLike: LIKE and GLOB are those of SQLite, which is asked the same.
func TestLike(t *testing.T) {
	w := newWorld(t)
	bare, err := sqlite3.Open(":memory:")
	w.must(err)
	defer bare.Close()
	st, _, err := bare.Prepare(`SELECT ?1 LIKE ?2, ?1 LIKE ?2 ESCAPE '!', ?1 GLOB ?2`)
	w.must(err)
	defer st.Close()
	pieces := []string{"a", "A", "%", "_", "*", "?", "ß", "é", "日", "!", "[", "]", "^", "-", "b", "[a-c]", "[^a]",
		"[]]", "!%", "1", "\xff"}
	r := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- the same each time
	some := func(n int, from []string) (s string) {
		for range r.IntN(n) {
			s += from[r.IntN(len(from))]
		}
		return s
	}
	for range 20_000 {
		text, pattern := some(6, pieces), some(6, pieces)
		w.must(errors.Join(st.BindText(1, text), st.BindText(2, pattern)))
		if !st.Step() {
			t.Fatal(st.Err())
		}
		like, escaped, glob := st.ColumnBool(0), st.ColumnBool(1), st.ColumnBool(2)
		w.must(st.Reset())
		for i, want := range []bool{like, escaped, glob} {
			if got := query.Matches(i, pattern, text); got != want {
				t.Errorf("%q %s %q: %v, SQLite says %v", text, []string{"LIKE", "LIKE ESCAPE", "GLOB"}[i], pattern, got, want)
			}
		}
	}
	w.equal(`SELECT 'Abc' LIKE 'a_C', 12 LIKE 1||'%', NULL LIKE 'a', 'a' LIKE NULL, 'a%' LIKE 'a!%' ESCAPE '!', x'6162' LIKE 'ab', 'a' NOT LIKE 'b', 'ab' GLOB 'a*'`, `[[1,1,null,null,1,1,1,1]]`)
}
