package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/store"
)

func exerciseOrder(t *testing.T, d Driver) {
	t.Run("pipelined commits of a run are applied in order", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		var receipts []*store.Receipt
		for i := range 40 {
			r, err := b.s.Submit(t.Context(), &store.Commit{
				Lease: l, Events: []store.Event{b.event(l, "run.batch_ingested")},
				Batches: []*store.Batch{batch("s", up("k", fmt.Sprint(i)), up(fmt.Sprint("k", i), `1`))},
			})
			b.must(err)
			receipts = append(receipts, r)
		}
		for i, r := range receipts {
			ack, err := r.Result()
			b.must(err)
			equal(t, "sequence", ack.FirstSequence, uint64(i))
		}
		rec, err := b.s.Record(t.Context(), "a", "s", "k")
		b.must(err)
		equal(t, "last writer", string(rec.Data), "39")
		equal(t, "version", rec.Version, uint64(79))
		b.verify()
	})
	t.Run("when one fails, those behind it fail with its error, and other runs go on", func(t *testing.T) {
		b := open(t, d)
		l, o := b.run("a"), b.run("o")
		bad := l
		bad.Fence++
		var mine, theirs []*store.Receipt
		submit := func(l store.Lease, i int) *store.Receipt {
			r, err := b.s.Submit(t.Context(),
				&store.Commit{Lease: l, Batches: []*store.Batch{batch("s", up(fmt.Sprint("k", i), `1`))}})
			b.must(err)
			return r
		}
		for i := range 10 {
			lease := l
			if i == 4 {
				lease = bad
			}
			mine = append(mine, submit(lease, i))
			theirs = append(theirs, submit(o, i))
		}
		failed := -1
		for i, r := range mine {
			_, err := r.Result()
			switch {
			case err == nil && failed >= 0 && i < 10:
				// Accepted after the failure was known; allowed only if it was submitted then.
			case err != nil && i < 4:
				t.Fatalf("commit %d: %v", i, err)
			case err != nil && !errors.Is(err, store.ErrFenced):
				t.Fatalf("commit %d: %v", i, err)
			}
			if err != nil && failed < 0 {
				failed = i
			}
		}
		equal(t, "first to fail", failed, 4)
		for i, r := range theirs {
			if _, err := r.Result(); err != nil {
				t.Fatalf("other run's commit %d: %v", i, err)
			}
		}
		equal(t, "other run's records", len(b.content("o", "s")), 10)
		b.ingest(l, batch("s", up("after", `1`))) // the run may go on once it knows
		b.verify()
	})
	t.Run("a commit that is refused leaves nothing", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		bad := l
		bad.Fence++
		c := b.ending(bad)
		c.Batches = []*store.Batch{batch("s", up("k", `1`))}
		c.Advance = []store.State{state(l, "s", `1`)}
		if _, err := b.commit(c); !errors.Is(err, store.ErrFenced) {
			t.Fatal(err)
		}
		equal(t, "content", b.content("a", "s"), map[string]string{})
		equal(t, "stats", b.stats("a", "s"), store.StreamStats{Stream: "s"})
		events, err := b.s.Events(t.Context(), l.RunID, 0, 10)
		b.must(err)
		equal(t, "events", len(events), 0)
	})
	t.Run("what a reader sees grows by whole commits", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			for ctx.Err() == nil {
				page, err := b.s.Records(t.Context(), store.RecordQuery{Connection: "a", Stream: "s", Limit: 1000})
				if err != nil {
					t.Error(err)
					return
				}
				// Every commit writes the same ten keys with one value.
				if len(page.Records) != 0 && len(page.Records) != 10 {
					t.Errorf("%d records in a page", len(page.Records))
				}
				for _, r := range page.Records {
					if string(r.Data) != string(page.Records[0].Data) {
						t.Errorf("page mixes %s and %s", r.Data, page.Records[0].Data)
					}
				}
			}
		})
		for i := range 60 {
			bt := batch("s")
			for j := range 10 {
				bt.Append(up(fmt.Sprint("k", j), fmt.Sprint(i)))
			}
			b.ingest(l, bt)
		}
		cancel()
		wg.Wait()
	})
	t.Run("several runs at once keep their records", func(t *testing.T) {
		b := open(t, d)
		var wg sync.WaitGroup
		for i := range 6 {
			c := store.ConnectionID(fmt.Sprint("c", i))
			l := b.run(c)
			wg.Go(func() {
				for j := range 30 {
					r, err := b.s.Submit(t.Context(),
						&store.Commit{Lease: l, Batches: []*store.Batch{batch("s", up(fmt.Sprint("k", j%20), fmt.Sprint(j)))}})
					if err == nil {
						_, err = r.Result()
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		b.reopen()
		for i := range 6 {
			equal(t, "records", len(b.content(store.ConnectionID(fmt.Sprint("c", i)), "s")), 20)
		}
		b.verify()
	})
}

func exerciseClosed(t *testing.T, d Driver) {
	b := &bench{t: t, d: d, s: d.Open(t, t.TempDir())}
	l := b.run("a")
	r, err := b.s.Submit(t.Context(), &store.Commit{Lease: l, Batches: []*store.Batch{batch("s", up("k", `1`))}})
	b.must(err)
	b.must(b.s.Close())
	if _, err := r.Result(); err != nil {
		t.Fatalf("commit submitted before Close: %v", err)
	}
	if _, err := b.s.Submit(t.Context(), &store.Commit{Lease: l}); !errors.Is(err, store.ErrClosed) {
		t.Fatalf("Submit after Close: %v", err)
	}
	if _, err := b.s.Connections(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Fatalf("read after Close: %v", err)
	}
	b.must(b.s.Close())
}
