package query_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/query"
)

const endless = `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) `

// allocated is how many bytes do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestWide: what an answer takes is bounded also where one row is large, or each value small.
func TestWide(t *testing.T) {
	w := newWorld(t)
	bytes := allocated(func() {
		if code := w.refused(host.Query{SQL: `WITH b(x) AS MATERIALIZED (SELECT hex(zeroblob(1000000))) SELECT ` +
			many("x", 1500) + ` FROM b`}); code != "query_limit" {
			t.Errorf("a row of 5 GB: %s", code)
		}
	})
	if bytes > 512<<20 {
		t.Errorf("a row of 5 GB took %d MB before it was refused", bytes>>20)
	}
	bytes = allocated(func() {
		r, err := w.mirror.Query(t.Context(),
			host.Query{SQL: endless + `SELECT ` + many("1", 1500) + ` FROM n LIMIT 100000`, Rows: 100_000})
		if err != nil || !r.Truncated || len(r.Rows)*1500 > 2_000_000 {
			t.Errorf("%d rows, truncated %v, %v", len(r.Rows), r.Truncated, err)
		}
	})
	if bytes > 512<<20 {
		t.Errorf("150 million values took %d MB", bytes>>20)
	}
}

func many(x string, n int) string { return strings.TrimSuffix(strings.Repeat(x+",", n), ",") }

// TestStraight: statements without a loop, in which SQLite looks at no time, have few steps, or
// look themselves: these would take minutes.
func TestStraight(t *testing.T) {
	w := newWorld(t)
	w.mirror.Within(200 * time.Millisecond)
	const large = `WITH x(x) AS MATERIALIZED (SELECT hex(zeroblob(1000000)) || '1'), y(y) AS MATERIALIZED (SELECT hex(zeroblob(1000000)) || '2'),
 j(j) AS MATERIALIZED (SELECT '[' || replace(hex(zeroblob(500000)), '0', '1,') || '1]'), u(u) AS MATERIALIZED (SELECT replace(hex(zeroblob(500000)), '0', 'ÿ')),
 s(s) AS MATERIALIZED (SELECT (WITH RECURSIVE n(c) AS (SELECT 256 UNION ALL SELECT c + 1 FROM n WHERE c < 700) SELECT group_concat(char(c), '') || 'ÿ' FROM n)) `
	for _, sql := range []string{
		`SELECT x IN (` + many("y", 45_000) + `) FROM x, y`,
		`SELECT CASE x ` + strings.Repeat("WHEN y THEN 1 ", 6_500) + `END FROM x, y`,
		`SELECT ` + many(`json_extract(j`+strings.Repeat(`,'$[900000]'`, 90)+`)`, 75) + ` FROM j`,
		`SELECT ` + many(`trim(u,s)`, 200) + ` FROM u, s`,
	} {
		if code := w.refused(host.Query{SQL: large + sql}); code != "query_limit" {
			t.Errorf("%.60s: %s", sql, code)
		}
	}
	w.equal(`SELECT count(*) FROM (SELECT `+many("1", 2000)+` ORDER BY 1)`, `[[1]]`)
	if code := w.refused(host.Query{SQL: `SELECT json_extract('{}'` + strings.Repeat(`, '$.a'`, 100) +
		`)`}); code != "query_invalid" {
		t.Errorf("101 arguments: %s", code)
	}
}

// TestScratchLooksAtTheTime: a statement with few steps, each of which moves megabytes, ends when its time is over.
func TestScratchLooksAtTheTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, err := query.ScratchFile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	if _, err := f.WriteAt(page, 0); err != nil {
		t.Error(err)
	}
	if _, err := f.ReadAt(page, 0); err != nil {
		t.Error(err)
	}
	cancel()
	if _, err := f.WriteAt(page, 0); !errors.Is(err, sqlite3.INTERRUPT) {
		t.Error(err)
	}
	if _, err := f.ReadAt(page, 0); !errors.Is(err, sqlite3.INTERRUPT) {
		t.Error(err)
	}
}
