package badger_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// Several read the same orders, more of them than are kept, while a run writes
// and a stream is erased: every listing is in order, and has every key that was
// there all the time once.
func TestOrdersHammer(t *testing.T) {
	s, err := badger.Open(t.TempDir(), badger.WithOrderBytes(crashOptions, 4<<10))
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
				q := store.RecordQuery{Connection: "c", Stream: store.Stream(fmt.Sprint("s", (i+j)%streams)), Order: store.ByKey, Limit: 90, Descending: j%2 == 1}
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
			if _, err := s.Records(t.Context(), store.RecordQuery{Connection: "c", Stream: "s0", Order: store.ByKey}); err != nil {
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
	r, err := s.Submit(t.Context(), &store.Commit{Lease: l, End: true, Events: []store.Event{{Type: "run.completed", RunID: l.RunID}}})
	if err == nil {
		_, err = r.Result()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The file of an order holds keys of records: that of a view has no name that
// anybody could open, and goes with the view.
func TestOrderFiles(t *testing.T) {
	dir := t.TempDir()
	s, err := badger.Open(dir, badger.WithOrderBytes(crashOptions, 1<<10))
	if err != nil {
		t.Fatal(err)
	}
	w := newWriter(t, s, "run_1")
	if _, err := w.commit(func(b *store.Batch) {
		for i := range 500 {
			b.Append(store.Change{Key: fmt.Appendf(nil, "k%03d", i*7%500), Data: []byte(`{}`)})
		}
	}).Result(); err != nil {
		t.Fatal(err)
	}
	v, err := s.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, records := range []func(context.Context, store.RecordQuery) (store.RecordPage, error){s.Records, v.Records} {
		page, err := records(t.Context(), store.RecordQuery{Connection: "c", Stream: "s", Order: store.ByKey})
		if err != nil || len(page.Records) != 100 || page.Records[99].Key != "k099" {
			t.Fatal(len(page.Records), err)
		}
	}
	if named, err := filepath.Glob(filepath.Join(dir, "db", "orders", "*")); err != nil || len(named) != 1 {
		t.Fatal(named, err)
	}
	open := func() (n int) {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("SKIPPED: no /proc")
		}
		for _, f := range files {
			if to, err := os.Readlink(filepath.Join("/proc/self/fd", f.Name())); err == nil && strings.HasPrefix(to, filepath.Join(dir, "db", "orders")) {
				n++
			}
		}
		return n
	}
	if n := open(); n != 2 {
		t.Fatalf("%d files of orders are open, want 2", n)
	}
	v.Close()
	v.Close()
	if n := open(); n != 1 {
		t.Fatalf("%d files of orders are open after the view was closed, want 1", n)
	}
	late, err := s.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // does not wait for views
		t.Fatal(err)
	}
	if _, err := late.Records(t.Context(), store.RecordQuery{Connection: "c", Stream: "s"}); err == nil {
		t.Fatal("a view outlived its store")
	}
	late.Close()
	if n := open(); n != 0 {
		t.Fatalf("%d files of orders are open after Close", n)
	}
}
