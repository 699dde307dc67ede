//go:build unix

package bench

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/query"
	"github.com/sluicehost/sluice/host/search"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// A corpus makes records of 8 fields and about 200 bytes, with words that are as frequent as
// those of a language: the n-th of 50,000 is in about every n-th text.
type corpus struct {
	random *rand.Rand
	zipf   *rand.Zipf
}

func newCorpus() *corpus {
	r := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- the same each time
	return &corpus{r, rand.NewZipf(r, 1.2, 8, 50_000)}
}

func (c *corpus) word() string { return fmt.Sprintf("w%dx", c.zipf.Uint64()) }

func (c *corpus) words(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = c.word()
	}
	return strings.Join(out, " ")
}

func (c *corpus) record(n int) string {
	return fmt.Sprintf(
		`{"id":"%09d","name":"%s","city":"%s","amount":%d.25,"count":%d,"active":%t,"created_at":"2026-01-02T03:04:05Z","note":"%s"}`,
		n, c.words(2), c.word(), n%10_000, n%100, n%2 == 0, c.words(12))
}

// collect commits records of the stream items from the first-th on.
func (c *corpus) collect(b *testing.B, st store.Store, run string, first, n int) {
	b.Helper()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	r := store.Run{ID: store.RunID("run_" + run), ConnectionID: "bench", Status: "active", StartedAt: time.Now()}
	lease, err := st.Acquire(b.Context(), r, "host", "boot", time.Hour)
	must(err)
	for done := 0; done < n; {
		batch := &store.Batch{Stream: "items"}
		for range min(5000, n-done) {
			batch.Append(store.Change{Key: fmt.Appendf(nil, "%09d", first+done), Data: []byte(c.record(first + done)),
				EmittedAt: time.Now().UnixMicro()})
			done++
		}
		commit := &store.Commit{Lease: lease, Batches: []*store.Batch{batch}}
		if done == n {
			over, now := r, time.Now()
			over.Status, over.FinishedAt = "succeeded", &now
			commit.Run, commit.End = &over, true
			commit.Events = []store.Event{{ID: store.EventID("evt_" + run), Type: "run.completed", RunID: r.ID,
				ConnectionID: "bench", OccurredAt: now, Data: []byte(`{}`)}}
		}
		receipt, err := st.Submit(b.Context(), commit)
		must(err)
		<-receipt.Done()
		_, err = receipt.Result()
		must(err)
	}
}

// BenchmarkQuery copies a store for queries, brings changes in, and asks. Beside it stands the
// library without Sluice: the same rows from memory into a table, and the same statements over
// the same file; figures of the same run. Goals for a million records: a first copy within
// 10 s, 10,000 changes within 1 s, statements within 1.3 times the library.
func BenchmarkQuery(b *testing.B) {
	n, c := records(), newCorpus()
	st, err := badger.Open(b.TempDir(), badger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	if err := st.PutConnection(b.Context(), store.Connection{ID: "bench", CreatedAt: time.Now()}); err != nil {
		b.Fatal(err)
	}
	c.collect(b, st, "1", 0, n)
	dir := b.TempDir()
	m := query.New(query.Options{Store: st, Dir: dir})
	ask := func(sql string) time.Duration {
		b.Helper()
		began := time.Now()
		if _, err := m.Query(b.Context(), host.Query{SQL: sql}); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	const (
		counts = `SELECT count(*) FROM bench.items`
		groups = `SELECT city, count(*), sum(amount) FROM bench.items GROUP BY 1 ORDER BY 2 DESC LIMIT 10`
	)
	for b.Loop() {
		b.ReportMetric(ask(counts).Seconds(), "first-copy-s")
		b.ReportMetric(bareRows(b, n).Seconds(), "bare-rows-s")
		c.collect(b, st, "2", n/2, 10_000)
		b.ReportMetric(ask(counts).Seconds(), "10k-changes-s")
		for name, sql := range map[string]string{"count": counts, "group": groups} {
			var ours, bare []float64
			for range 5 {
				ours = append(ours, ask(sql).Seconds())
				bare = append(bare, bareAsk(b, filepath.Join(dir, "bench.db"), strings.Replace(sql, "bench.", "", 1)).Seconds())
			}
			b.ReportMetric(median(ours)*1e3, name+"-ms")
			b.ReportMetric(median(ours)/median(bare), name+"/bare")
		}
	}
}

// bareRows has the library make a table of such rows.
func bareRows(b *testing.B, n int) time.Duration {
	b.Helper()
	began := time.Now()
	db, err := sqlite3.Open("file:" + filepath.Join(b.TempDir(), "bare.db"))
	if err == nil {
		err = db.Exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; CREATE TABLE items (key TEXT PRIMARY KEY, name TEXT, city TEXT, amount REAL, count INTEGER, active BOOLEAN, created_at TEXT, note TEXT); BEGIN")
	}
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	put, _, err := db.Prepare("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		b.Fatal(err)
	}
	defer put.Close()
	note := strings.Repeat("w8x ", 12)
	for i := range n {
		for at, text := range []string{fmt.Sprintf("%09d", i), "w1x w2x", "w3x", "", "", "",
			"2026-01-02T03:04:05.000000Z", note} {
			if err := put.BindText(at+1, text); err != nil {
				b.Fatal(err)
			}
		}
		_, _, _ = put.BindFloat(4, float64(i)), put.BindInt64(5, int64(i%100)), put.BindInt64(6, int64(i%2))
		put.Step()
		if err := put.Reset(); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Exec("COMMIT"); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// bareAsk runs a statement over a file with the library alone.
func bareAsk(b *testing.B, path, sql string) time.Duration {
	b.Helper()
	began := time.Now()
	db, err := sqlite3.Open("file:" + path + "?mode=ro")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	st, _, err := db.Prepare(sql)
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	for st.Step() {
		_ = st.ColumnText(0)
	}
	if err := st.Err(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// BenchmarkSearch makes the index of a store and searches: words as frequent as they are in
// texts, two of them, phrases, beginnings, and without a word. Goals for a million records:
// p50 under 10 ms, p99 under 200 ms; 10,000 changes within 1 s.
func BenchmarkSearch(b *testing.B) {
	n, c := records(), newCorpus()
	st, err := badger.Open(b.TempDir(), badger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	if err := st.PutConnection(b.Context(), store.Connection{ID: "bench", CreatedAt: time.Now()}); err != nil {
		b.Fatal(err)
	}
	c.collect(b, st, "1", 0, n)
	indexes := search.New(search.Options{Store: st, Dir: b.TempDir()})
	defer indexes.Close()
	look := func(words string) time.Duration {
		b.Helper()
		began := time.Now()
		if _, err := indexes.Search(b.Context(), host.SearchQuery{Words: words}); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	for b.Loop() {
		b.ReportMetric(look("w8x").Seconds(), "first-index-s")
		c.collect(b, st, "2", n/2, 10_000)
		b.ReportMetric(look("w8x").Seconds(), "10k-changes-s")
		var took []float64
		for i := range 1000 {
			words := c.word()
			switch i % 8 {
			case 1, 2:
				words += " " + c.word()
			case 3:
				words = `"` + words + " " + c.word() + `"`
			case 4:
				words = words[:min(len(words), 3)] + "*"
			case 5:
				words += " -" + c.word()
			}
			took = append(took, look(words).Seconds()*1e3)
		}
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2], "p50-ms")
		b.ReportMetric(took[len(took)*99/100], "p99-ms")
		b.ReportMetric(took[len(took)-1], "max-ms")
	}
}
