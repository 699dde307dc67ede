//go:build unix

package badger_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// Several read pages of more streams and orders than windows are kept, while a run writes
// and a stream is erased: every listing is in order, and has every key that was
// there all the time once.
func TestOrderedHammer(t *testing.T) {
	s, err := badger.Open(t.TempDir(), badger.WithWindowBytes(crashOptions, 4<<10))
	if err != nil {
		t.Fatal(err)
	}
	const streams, keys = 6, 400
	w := newWriter(t, s, "run_1")
	write := func(round int) {
		c := &store.Commit{Lease: w.lease}
		for i := range streams {
			b := new(store.Batch)
			b.Reset(store.Stream(fmt.Sprint("s", i)))
			for k := range keys {
				if n := k * 37 % keys; round == 0 || n%7 == round%7 {
					b.Append(store.Change{Key: fmt.Appendf(nil, "k%03d", n), Data: fmt.Appendf(nil, `{"r":%d}`, round)})
				}
			}
			c.Batches = append(c.Batches, b)
		}
		r, err := s.Submit(t.Context(), c)
		if err == nil {
			_, err = r.Result()
		}
		if err != nil {
			t.Error(err)
		}
	}
	write(0)
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			for j := range 40 {
				q := store.RecordQuery{Connection: "c", Stream: store.Stream(fmt.Sprint("s", (i+j)%streams)), Order: store.ByKey,
					Limit: 90, Descending: j%2 == 1}
				if j%3 == 0 {
					q.Order = store.ByEmitted
				}
				last, seen := "", 0
				for {
					page, err := s.Records(t.Context(), q)
					if err != nil {
						t.Error(err)
						return
					}
					for _, r := range page.Records {
						if seen++; last != "" && (strings.Compare(r.Key, last) > 0) == q.Descending {
							t.Errorf("%s follows %s", r.Key, last)
						}
						last = r.Key
					}
					if q.AfterKey = page.AfterKey; !page.More {
						break
					}
				}
				if seen != keys {
					t.Errorf("%d keys of %d", seen, keys)
				}
			}
		})
	}
	for round := range 30 {
		write(1 + round)
	}
	readers.Wait()
	end(t, s, w.lease)
	readers.Go(func() {
		for range 50 {
			if _, err := s.Records(t.Context(),
				store.RecordQuery{Connection: "c", Stream: "s0", Order: store.ByKey}); err != nil {
				t.Error(err)
			}
		}
	})
	if err := s.DeleteConnection(t.Context(), "c", true); err != nil {
		t.Error(err)
	}
	readers.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func end(t *testing.T, s *badger.Store, l store.Lease) {
	t.Helper()
	r, err := s.Submit(t.Context(),
		&store.Commit{Lease: l, End: true, Events: []store.Event{{Type: "run.completed", RunID: l.RunID}}})
	if err == nil {
		_, err = r.Result()
	}
	if err != nil {
		t.Fatal(err)
	}
}
