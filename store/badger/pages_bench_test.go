//go:build unix

package badger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// BenchmarkPages measures pages of 100 records out of a million, at the
// beginning, in the middle and at the end of every order, and what the first
// page of an order costs, which has it worked out. Keys lie across the versions,
// so every record of a page by key is in a segment of its own.
func BenchmarkPages(b *testing.B) {
	const total = 1_000_000
	s, err := badger.Open(benchDir(b), badger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	f := newFeeder(b, s)
	f.feed(total)
	f.drain()
	if err := s.Settle(b.Context()); err != nil {
		b.Fatal(err)
	}
	read := func(q store.RecordQuery) store.RecordPage {
		q.Connection, q.Stream = "bench", "s"
		page, err := s.Records(b.Context(), q)
		if err != nil || len(page.Records) == 0 && q.Match == nil {
			b.Fatal(len(page.Records), err)
		}
		return page
	}
	for _, order := range []store.Order{store.ByKey, store.ByEmitted} {
		b.Run(fmt.Sprintf("%s/worked-out", order), func(b *testing.B) {
			for i := range b.N {
				if i > 0 {
					b.StopTimer()
					s.ForgetWindows()
					b.StartTimer()
				}
				read(store.RecordQuery{Order: order})
			}
		})
	}
	middle := map[store.Order]store.RecordQuery{
		store.ByVersion: {After: total / 2}, store.ByKey: {AfterKey: "2"}, store.ByEmitted: {},
	}
	for order, from := range middle {
		from.Order = order
		if order == store.ByEmitted {
			continue
		}
		for place, q := range map[string]store.RecordQuery{
			"first": {Order: order}, "middle": from, "last": {Order: order, Descending: true},
		} {
			for _, limit := range []int{100, 1000} {
				q.Limit = limit
				b.Run(fmt.Sprintf("%s/%s/%d", order, place, limit), func(b *testing.B) {
					slowest := time.Duration(0)
					for range b.N {
						from := time.Now()
						page := read(q)
						slowest = max(slowest, time.Since(from))
						q.After, q.AfterKey = page.After, page.AfterKey
						if !page.More {
							q.After, q.AfterKey = 0, ""
						}
					}
					b.ReportMetric(float64(slowest.Microseconds())/1e3, "slowest-ms")
				})
			}
		}
		b.Run(fmt.Sprintf("%s/nothing-matches", order), func(b *testing.B) {
			for range b.N {
				read(store.RecordQuery{Order: order, Match: func(store.Record) bool { return false }})
			}
		})
	}
	b.Run("key/after-500-written", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			f.feed(500)
			f.drain()
			b.StartTimer()
			read(store.RecordQuery{Order: store.ByKey})
		}
	})
}
