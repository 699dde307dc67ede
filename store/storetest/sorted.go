package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

// scramble fills a stream in an order that is neither that of its keys nor that
// of its times, round after round; a third of the keys ends deleted.
func (b *bench) scramble(l store.Lease, round int) {
	b.t.Helper()
	bt := batch("s")
	for i := range 60 {
		n := (i*37 + round*11) % 60
		c := up(fmt.Sprintf("k%02d", n), fmt.Sprintf(`{"r":%d}`, round))
		c.EmittedAt = epoch.Add(time.Duration(n*7%10-5) * time.Hour).UnixMicro() // many are equal
		if n < 3 {
			c.EmittedAt = -int64(n) // 1970 and before
		}
		if (n+round)%3 == 0 {
			c.Op, c.Data = store.Delete, nil
		}
		bt.Append(c)
	}
	b.ingest(l, bt)
}

func exerciseSorted(t *testing.T, d Driver) {
	orders := map[store.Order]func(a, b store.Record) int{
		store.ByVersion: func(a, b store.Record) int { return cmp.Compare(a.Version, b.Version) },
		store.ByKey:     func(a, b store.Record) int { return strings.Compare(a.Key, b.Key) },
		store.ByEmitted: func(a, b store.Record) int {
			return cmp.Or(a.EmittedAt.Compare(b.EmittedAt), strings.Compare(a.Key, b.Key))
		},
	}
	b := open(t, d)
	l := b.run("a")
	for round := range 6 {
		b.scramble(l, round)
		b.ingest(l, batch("s", up(fmt.Sprintf(`["x","%d"]`, round), `{}`)), batch("other", up("k", `{}`)))
		if round == 3 {
			b.reopen()
		}
		for order, compare := range orders {
			for _, deleted := range []bool{false, true} {
				for _, down := range []bool{false, true} {
					want := b.all(store.RecordQuery{Connection: "a", Stream: "s", Deleted: deleted})
					slices.SortFunc(want, compare)
					if down {
						slices.Reverse(want)
					}
					for _, limit := range []int{1, 7, 1000} {
						got := b.all(store.RecordQuery{Connection: "a", Stream: "s", Order: order, Descending: down,
							Deleted: deleted, Limit: limit})
						equal(t, fmt.Sprintf("by %s, descending %v, tombstones %v, limit %d, round %d", order, down, deleted,
							limit, round), got, want)
					}
				}
			}
		}
	}
	keys := func(q store.RecordQuery) (keys []string) {
		q.Connection, q.Stream, q.Order, q.Deleted = "a", "s", store.ByKey, true
		page, err := b.s.Records(t.Context(), q)
		b.must(err)
		for _, r := range page.Records {
			keys = append(keys, r.Key)
		}
		return keys
	}
	equal(t, "behind a key that is not there", keys(store.RecordQuery{AfterKey: "k10x", Limit: 2}), []string{"k11", "k12"})
	equal(t, "below a key", keys(store.RecordQuery{AfterKey: "k10", Limit: 2, Descending: true}), []string{"k09", "k08"})
	equal(t, "behind the last", keys(store.RecordQuery{AfterKey: "z"}), []string(nil))
	equal(t, "below the first", keys(store.RecordQuery{AfterKey: "A", Descending: true}), []string(nil))
	if _, err := b.s.Records(t.Context(), store.RecordQuery{Connection: "a", Stream: "s", Order: "size"}); err == nil {
		t.Fatal("an order that is none was taken")
	}
	page, err := b.s.Records(t.Context(), store.RecordQuery{Connection: "a", Stream: "none", Order: store.ByKey})
	b.must(err)
	equal(t, "page of an unknown stream", page, store.RecordPage{})
}

func exerciseMatch(t *testing.T, d Driver) {
	b := open(t, d)
	l := b.run("a")
	const n = 12_000
	for from := 0; from < n; from += 500 {
		bt := batch("s")
		for i := range 500 {
			bt.Append(up(fmt.Sprintf("k%05d", from+i), fmt.Sprintf(`{"i":%d}`, from+i)))
		}
		b.ingest(l, bt)
	}
	for _, order := range []store.Order{store.ByVersion, store.ByKey} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprintf("what matches, by %s, descending %v", order, down), func(t *testing.T) {
				asked := 0
				q := store.RecordQuery{Connection: "a", Stream: "s", Order: order, Descending: down, Limit: 2}
				q.Match = func(r store.Record) bool {
					asked++
					return strings.HasSuffix(string(r.Data), "777}")
				}
				most, got := 0, 0
				for {
					asked = 0
					page, err := b.s.Records(t.Context(), q)
					b.must(err)
					most = max(most, asked)
					for _, r := range page.Records {
						if got++; !strings.HasSuffix(r.Key, "777") {
							t.Fatalf("%s does not match", r.Key)
						}
					}
					if q.After, q.AfterKey = page.After, page.AfterKey; !page.More {
						break
					}
				}
				equal(t, "matches", got, n/1000)
				q.Match = func(store.Record) bool { asked++; return false }
				q.After, q.AfterKey, asked = 0, "", 0
				page, err := b.s.Records(t.Context(), q)
				b.must(err)
				if most = max(most, asked); most > 10_000 || !page.More || len(page.Records) > 0 {
					t.Fatalf("a page asked about %d records; more %v", most, page.More)
				}
			})
		}
	}
}

func exerciseViews(t *testing.T, d Driver) {
	b := open(t, d)
	l := b.run("a")
	b.must(b.s.PutConnection(t.Context(), store.Connection{ID: "a", CreatedAt: epoch, UpdatedAt: epoch}))
	for round := range 3 {
		b.scramble(l, round)
	}
	b.all(store.RecordQuery{Connection: "a", Stream: "s", Order: store.ByKey})
	want := map[store.Order][]store.Record{}
	queries := map[store.Order]store.RecordQuery{}
	for _, order := range []store.Order{store.ByVersion, store.ByKey, store.ByEmitted} {
		queries[order] = store.RecordQuery{Connection: "a", Stream: "s", Order: order, Deleted: true, Limit: 7}
		want[order] = b.all(queries[order])
	}
	version := b.stats("a", "s").LastVersion
	v, err := b.s.View(t.Context())
	b.must(err)
	defer v.Close()
	read := func(what string) {
		t.Helper()
		for order, q := range queries {
			var got []store.Record
			for {
				page, err := v.Records(t.Context(), q)
				b.must(err)
				equal(t, "version", page.Version, version)
				got = append(got, page.Records...)
				if q.After, q.AfterKey = page.After, page.AfterKey; !page.More {
					break
				}
			}
			equal(t, what+", by "+string(order), got, want[order])
		}
	}
	read("at once")
	for round := range 20 {
		b.scramble(l, 3+round)
		b.all(store.RecordQuery{Connection: "a", Stream: "s", Order: store.ByKey})
	}
	read("after all was written over")
	b.end(l)
	b.must(b.s.DeleteConnection(t.Context(), "a", true))
	read("after it was erased")
	equal(t, "records", b.all(store.RecordQuery{Connection: "a", Stream: "s", Order: store.ByKey}), []store.Record(nil))
}
