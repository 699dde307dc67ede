//go:build unix

package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/postgres"
	"github.com/sluicehost/sluice/store"
	server "github.com/sluicehost/sluice/tests/postgres"
)

// benchRows is how many rows one round brings in; SLUICE_BENCH_ROWS sets another number.
func benchRows(b *testing.B) int {
	if n, err := strconv.Atoi(os.Getenv("SLUICE_BENCH_ROWS")); err == nil {
		return n
	}
	return 300_000
}

// A memory is a stream in memory: records of 8 fields and about 200 bytes.
type memory struct {
	records []store.Record
	rows    [][]any // the same for the bare library
}

var benchColumns = []string{"_key", "_version", "_committed_at", "id", "subject", "sender", "body", "size",
	"score", "read", "sent_at"}

const benchTable = ` (_key text PRIMARY KEY, _version bigint NOT NULL, _committed_at timestamptz NOT NULL,
	id bigint, subject text, sender text, body text, size bigint, score double precision, read boolean, sent_at timestamptz)`

func newMemory(n, change int) *memory {
	m := &memory{}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range n {
		id := (i * 7919) % n // in no order
		key := fmt.Sprintf("message-%07d", id)
		subject, sender := fmt.Sprintf("The subject of %d, %d", id, change), fmt.Sprintf("someone%d@example.org", id%1000)
		body := strings.Repeat("words ", 8)
		sent := at.Add(time.Duration(id) * time.Second)
		m.records = append(m.records,
			store.Record{Stream: "items", Key: key, Version: uint64(i + 1 + change*n), IngestedAt: at,
				Data: json.RawMessage(fmt.Sprintf(
					`{"id":%d,"subject":%q,"sender":%q,"body":%q,"size":%d,"score":%d.25,"read":%t,"sent_at":%q}`,
					id, subject, sender, body, i%5000, i%100, i%2 == 0, sent.Format(time.RFC3339)))})
		m.rows = append(m.rows, []any{key, int64(i + 1 + change*n), at, int64(id), subject, sender, body, int64(i % 5000),
			float64(i%100) + 0.25, i%2 == 0, sent})
	}
	return m
}

// Records implements destination.Source.
func (m *memory) Records(_ context.Context, q store.RecordQuery) (store.RecordPage, error) {
	first := m.records[0].Version
	from := 0
	if q.After >= first {
		from = int(q.After - first + 1)
	}
	to := min(from+q.Limit, len(m.records))
	last := m.records[to-1].Version
	return store.RecordPage{Records: m.records[from:to], After: last, Version: m.records[len(m.records)-1].Version,
		More: to < len(m.records)}, nil
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A measure is what one way of bringing rows in took.
type measure struct{ wall, cpu []time.Duration }

func (m *measure) take(b *testing.B, do func() error) {
	b.Helper()
	began, busy := time.Now(), cpu()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	m.wall, m.cpu = append(m.wall, time.Since(began)), append(m.cpu, cpu()-busy)
}

// median is the rows a second in the median round.
func median(n int, of []time.Duration) float64 {
	of = slices.Sorted(slices.Values(of))
	return float64(n) / of[len(of)/2].Seconds()
}

// ratio is the median over rounds of how fast a was beside b.
func ratio(a, b []time.Duration) float64 {
	var all []float64
	for i := range a {
		all = append(all, b[i].Seconds()/a[i].Seconds())
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkSink brings records from memory into a table that is empty (load) and into one
// that has them all (upsert). What it is compared with is pgx on rows of Go values: one
// COPY into a table with a primary key, and COPY into a temporary table with an upsert.
func BenchmarkSink(b *testing.B) {
	s := server.Start(b, "max_wal_size=4GB", "shared_buffers=512MB")
	n := benchRows(b)
	first, second := newMemory(n, 0), newMemory(n, 1)
	var load, copied, change, upserted measure
	for b.Loop() {
		for range 3 {
			at := s.Database(b)
			sink, err := postgres.Kind{}.Open(b.Context(), at, destination.Owner{Host: "h", Destination: "d"})
			if err != nil {
				b.Fatal(err)
			}
			c := connect(b, at)
			exec(b, at, "CREATE TABLE bare"+benchTable)
			load.take(b, func() error { return bring(sink, first) })
			copied.take(b, func() error {
				_, err := c.CopyFrom(b.Context(), pgx.Identifier{"bare"}, benchColumns, pgx.CopyFromRows(first.rows))
				return err
			})
			change.take(b, func() error { return bring(sink, second) })
			upserted.take(b, func() error { return upsertBare(c, second.rows) })
			if got := one(b, at, "SELECT count(*) FILTER (WHERE _version > "+strconv.Itoa(n)+
				") FROM sluice.mail_items"); got != strconv.Itoa(n) {
				b.Fatalf("%s of %d rows", got, n)
			}
			_ = sink.Close()
			_ = c.Close(context.Background())
		}
	}
	b.ReportMetric(median(n, load.wall), "load-rows/s")
	b.ReportMetric(median(n, copied.wall), "copy-bare-rows/s")
	b.ReportMetric(ratio(load.wall, copied.wall), "load-ratio")
	b.ReportMetric(median(n, change.wall), "upsert-rows/s")
	b.ReportMetric(median(n, upserted.wall), "upsert-bare-rows/s")
	b.ReportMetric(ratio(change.wall, upserted.wall), "upsert-ratio")
	b.ReportMetric(median(n, load.cpu), "load-rows/cpu-s")
	b.ReportMetric(median(n, copied.cpu), "copy-bare-rows/cpu-s")
	b.ReportMetric(median(n, change.cpu), "upsert-rows/cpu-s")
	b.ReportMetric(median(n, upserted.cpu), "upsert-bare-rows/cpu-s")
	b.ReportMetric(0, "ns/op")
}

func bring(sink destination.Sink, m *memory) error {
	ctx := context.Background()
	id := destination.StreamID{Connection: "mail", Stream: "items"}
	holdings, err := sink.Holdings(ctx)
	if err != nil {
		return err
	}
	var have *destination.Holding
	if h, ok := holdings[id]; ok {
		have = &h
	}
	w := destination.Wanted{StreamID: id, Since: time.Unix(1, 0).UTC(), Mode: destination.Current,
		Last: m.records[len(m.records)-1].Version}
	return destination.Bring(ctx, m, sink, w, have, func(int) {})
}

func upsertBare(c *pgx.Conn, rows [][]any) error {
	ctx := context.Background()
	sets := make([]string, len(benchColumns))
	for i, n := range benchColumns {
		sets[i] = n + " = excluded." + n
	}
	for batch := range slices.Chunk(rows, 20_000) {
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "CREATE TEMPORARY TABLE stage (LIKE bare) ON COMMIT DROP"); err != nil {
				return err
			}
			if _, err := tx.CopyFrom(ctx, pgx.Identifier{"stage"}, benchColumns, pgx.CopyFromRows(batch)); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "INSERT INTO bare SELECT * FROM stage ON CONFLICT (_key) DO UPDATE SET "+
				strings.Join(sets[1:], ", "))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
