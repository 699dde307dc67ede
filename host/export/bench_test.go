package export_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/store"
)

// pages has the same 1,000 records again and again.
type pages struct {
	records []store.Record
	left    int
}

func (p *pages) Records(context.Context, store.RecordQuery) (store.RecordPage, error) {
	p.left--
	return store.RecordPage{Records: p.records, After: 1, More: p.left > 0}, nil
}

// BenchmarkWrite writes records of 8 fields, about 200 bytes each, beside encoding/json.
func BenchmarkWrite(b *testing.B) {
	var records []store.Record
	for n := range 1000 {
		at := time.UnixMilli(1_700_000_000_000 + int64(n))
		records = append(records,
			store.Record{Stream: "items", Key: fmt.Sprintf("message-%08d", n), Version: uint64(n + 1),
				RunID: "run_01K9W3C7RZ5D1N8V5X9M2QH4TB", EmittedAt: at, IngestedAt: at,
				Data: fmt.Appendf(nil, `{"id":%d,"subject":"Invoice %d of the year","from":"person%d@example.org","amount":%d.25,"read":%t,"at":"2026-01-02T03:%02d:%02dZ","labels":["inbox","l%d"],"note":"some words that %x are not all the same"}`,
					n, n*31%997, n*17%5003, n%1000, n%3 == 0, n/60%60, n%60, n%20, n*2654435761)})
	}
	for name, write := range map[string]func(s export.Selection, src export.Source) (int64, error){
		"jsonl": func(s export.Selection, src export.Source) (int64, error) {
			return s.WriteNDJSON(context.Background(), io.Discard, src)
		},
		"csv": func(s export.Selection, src export.Source) (int64, error) {
			return s.WriteCSV(context.Background(), io.Discard, src,
				[]string{"id", "subject", "from", "amount", "read", "at", "labels", "note"})
		},
		"encoding-json": func(s export.Selection, src export.Source) (n int64, err error) {
			e := json.NewEncoder(io.Discard)
			err = s.Each(context.Background(), src, func(r store.Record) error {
				n++
				return e.Encode(export.LineOf("mail", r))
			})
			return n, err
		},
	} {
		b.Run(name, func(b *testing.B) {
			rows := int64(0)
			for b.Loop() {
				n, err := write(export.Selection{Connection: "mail", Streams: []export.From{{Stream: "items"}}},
					&pages{records, 200})
				if err != nil {
					b.Fatal(err)
				}
				rows += n
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
