package badger_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// A writer commits batches of one run and keeps a model of the stream "s".
type writer struct {
	t     *testing.T
	s     *badger.Store
	lease store.Lease
	model map[string]string // key to data; "" is a tombstone
}

func newWriter(t *testing.T, s *badger.Store, run string) *writer {
	t.Helper()
	l, err := s.Acquire(t.Context(), store.Run{ID: store.RunID(run), ConnectionID: "c", Status: "active"}, "h", "b", 1e12)
	if err != nil {
		t.Fatal(err)
	}
	return &writer{t: t, s: s, lease: l, model: map[string]string{}}
}

func (w *writer) commit(change func(b *store.Batch)) *store.Receipt {
	w.t.Helper()
	b := new(store.Batch)
	b.Reset("s")
	change(b)
	for _, c := range b.Changes() {
		if c.Op == store.Delete {
			if _, ok := w.model[string(c.Key)]; !ok {
				continue
			}
		}
		w.model[string(c.Key)] = string(c.Data)
	}
	r, err := w.s.Submit(w.t.Context(), &store.Commit{Lease: w.lease, Batches: []*store.Batch{b}})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// check compares the stream with the model, and has it recounted.
func (w *writer) check(s *badger.Store) {
	w.t.Helper()
	w.s = s
	w.compare("c")
	if err := s.Verify(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// compare compares the stream with the model, listed and key by key.
func (w *writer) compare(c store.ConnectionID) {
	w.t.Helper()
	s := w.s
	q := store.RecordQuery{Connection: c, Stream: "s", Deleted: true, Limit: 1000}
	seen := 0
	for {
		page, err := s.Records(w.t.Context(), q)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range page.Records {
			seen++
			q.After = r.Version
			if want, ok := w.model[r.Key]; !ok || want != string(r.Data) || r.Deleted != (want == "") {
				w.t.Fatalf("key %s holds %.40q, deleted %v, want %.40q", r.Key, r.Data, r.Deleted, want)
			}
		}
		if !page.More {
			break
		}
	}
	if seen != len(w.model) {
		w.t.Fatalf("%d entries listed, want %d", seen, len(w.model))
	}
	i := 0
	for k, want := range w.model {
		if i++; i > 500 {
			break
		}
		r, err := s.Record(w.t.Context(), c, "s", k)
		if err != nil || string(r.Data) != want {
			w.t.Fatalf("record %s = %.40q, %v", k, r.Data, err)
		}
	}
}

func bulkSize(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "db", "bulk"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			n += info.Size()
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Space does not grow without bound when the same keys are written again and
// again: segments are rewritten, index runs merged, bulk files reclaimed.
func TestUpkeep(t *testing.T) {
	dir := t.TempDir()
	opts := badger.WithBulkRoll(badger.WithMemRows(badger.Options{Small: true}, 2000), 1<<20)
	s, err := badger.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	w := newWriter(t, s, "run_1")
	rnd := rand.New(rand.NewPCG(1, 2))
	const keys, rounds = 12_000, 40
	for round := range rounds {
		var last *store.Receipt
		for range keys / 1000 {
			last = w.commit(func(b *store.Batch) {
				for range 1000 {
					k := fmt.Appendf(nil, "key-%06d", rnd.IntN(keys))
					if rnd.IntN(8) == 0 {
						b.Append(store.Change{Op: store.Delete, Key: k})
						continue
					}
					b.Append(store.Change{Key: k, Data: fmt.Appendf(nil, `{"round":%d,"r":%d,"pad":"%0100d"}`, round, rnd.IntN(3), 0)})
				}
			})
		}
		if _, err := last.Result(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.check(s)
	// 480,000 versions of 150 bytes were written, some 70 MB; 12,000 entries, 2 MB, are left.
	if n := bulkSize(t, dir); n > 12<<20 {
		t.Errorf("%d bytes on disk", n)
	}
	if runs, rows := s.IndexRuns("c", "s"); runs > 20 || rows > 60_000 {
		t.Errorf("%d index runs of %d rows", runs, rows)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = badger.Open(dir, opts); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w.check(s)
}

// Many flushes of single records do not stay many segments.
func TestUpkeepOfTinyFlushes(t *testing.T) {
	s, err := badger.OpenMemory(badger.WithMemRows(badger.Options{}, 1000))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := newWriter(t, s, "run_1")
	var last *store.Receipt
	for i := range 10_000 {
		last = w.commit(func(b *store.Batch) {
			b.Append(store.Change{Key: fmt.Appendf(nil, "k%d", i), Data: []byte(`{"v":1}`)})
		})
	}
	if _, err := last.Result(); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.Segments("c", "s"); n > 3000 {
		t.Errorf("%d segments", n)
	}
	w.check(s)
}
