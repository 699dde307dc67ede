package destinationtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/destination"
)

// Amount of data that Bench writes.
const (
	benchBatch   = 20_000
	benchBatches = 50
)

// Bench brings a million records of 8 fields, about 200 bytes each, into a new place. For comparison it writes the rows
// of each batch with nothing but the library: prepare converts them, the function that it returns is timed, and finish
// ends the file. Neither time includes making the rows.
func Bench(b *testing.B, k destination.Kind, place func() string,
	bare func() (prepare func([]destination.Row) func() error, finish func() error)) {
	var sinks, bares time.Duration
	rows := 0
	for b.Loop() {
		s, err := k.Open(b.Context(), place(), owner)
		if err != nil {
			b.Fatal(err)
		}
		prepare, finish := bare()
		shape, id := &destination.Shape{}, destination.StreamID{Connection: "mail", Stream: "items"}
		var have *destination.Holding
		for range benchBatches {
			batch := &destination.Batch{ID: id, From: have, Rows: benchRows(shape, have), New: true} // as Bring fills a table
			batch.To = destination.Holding{Mode: destination.Current, Mark: batch.Rows[len(batch.Rows)-1].Version,
				Shape: shape.Clone()}
			write := prepare(batch.Rows)
			bares += timed(b, write)
			sinks += timed(b, func() error { return s.Apply(b.Context(), batch) })
			have = &batch.To
			rows += len(batch.Rows)
		}
		bares += timed(b, finish)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)/sinks.Seconds(), "rows/s")
	b.ReportMetric(float64(rows)/bares.Seconds(), "bare-rows/s")
	b.ReportMetric(bares.Seconds()/sinks.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

func timed(b *testing.B, do func() error) time.Duration {
	began := time.Now()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// benchRows returns the rows that follow those in have.
func benchRows(shape *destination.Shape, have *destination.Holding) []destination.Row {
	rows, n := make([]destination.Row, benchBatch), 0
	if have != nil {
		n = int(have.Mark) // #nosec G115 -- a million
	}
	for i := range rows {
		n++
		rows[i] = destination.Row{Key: fmt.Sprintf("message-%08d", n*7919%100_000_007), Version: uint64(n), At: time.UnixMilli(1_700_000_000_000 + int64(n))} // #nosec G115 -- a million
		rows[i].Values, rows[i].Rest = shape.Row(fmt.Appendf(nil,
			`{"id":%d,"subject":"Invoice %d of the year","from":"person%d@example.org","amount":%d.25,"read":%t,"at":"2026-01-02T03:%02d:%02dZ","labels":["inbox","l%d"],"note":"some words that %x are not all the same"}`,
			n, n*31%997, n*17%5003, n%1000, n%3 == 0, n/60%60, n%60, n%20, n*2654435761), make([]destination.Value, 0, 8))
	}
	return rows
}
