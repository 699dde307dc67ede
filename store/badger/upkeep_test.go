//go:build unix

package badger_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// Streams that were not used for long leave memory, and come back unharmed.
func TestMemoryOfManyStreams(t *testing.T) {
	opts := badger.WithStreamMemory(badger.WithMemRows(badger.Options{}, 200), 100<<10)
	s, err := badger.OpenMemory(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := newWriter(t, s, "run_1")
	const streams, rounds, each = 30, 6, 150
	for round := range rounds {
		for i := range streams {
			b := new(store.Batch)
			b.Reset(store.Stream(fmt.Sprint("s", i)))
			for j := range each {
				b.Append(store.Change{Key: fmt.Appendf(nil, "k%d", j*(round+1)%(2*each)), Data: fmt.Append(nil, round, i, j)})
			}
			r, err := s.Submit(t.Context(), &store.Commit{Lease: w.lease, Batches: []*store.Batch{b}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Result(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, m := s.StreamsInMemory(), s.Memory(); n > 10 || m > 200<<10 {
		t.Errorf("%d streams in memory, %d bytes", n, m)
	}
	for i := range streams {
		want := map[string]string{}
		for round := range rounds {
			for j := range each {
				want[fmt.Sprintf("k%d", j*(round+1)%(2*each))] = fmt.Sprint(round, i, j)
			}
		}
		page, err := s.Records(t.Context(),
			store.RecordQuery{Connection: "c", Stream: store.Stream(fmt.Sprint("s", i)), Limit: 1000})
		if err != nil || len(page.Records) != len(want) {
			t.Fatalf("stream %d: %d records, want %d, %v", i, len(page.Records), len(want), err)
		}
		for _, r := range page.Records {
			if want[r.Key] != string(r.Data) {
				t.Fatalf("stream %d: %s = %s, want %s", i, r.Key, r.Data, want[r.Key])
			}
		}
	}
	for i := range streams {
		if _, err := s.Record(t.Context(), "c", store.Stream(fmt.Sprint("s", i)), "k0"); err != nil {
			t.Fatal(err)
		}
	}
	if m := s.Memory(); m > 250<<10 {
		t.Errorf("%d bytes after a record of each stream was read", m)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The index of a stream that is read after a restart takes bounded memory, however many keys the stream has.
func TestRecordOfLargeStream(t *testing.T) {
	dir := t.TempDir()
	opts := badger.WithStreamMemory(badger.WithMemRows(badger.Options{}, 100), 80<<10)
	s, err := badger.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	w := newWriter(t, s, "run_1")
	const keys, each = 12_000, 500 // whose filters take 32 kB
	for n := 0; n < keys; n += each {
		r := w.commit(func(b *store.Batch) {
			for k := n; k < n+each; k++ {
				b.Append(store.Change{Key: fmt.Appendf(nil, "k%d", k), Data: fmt.Append(nil, k)})
			}
		})
		if _, err := r.Result(); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Settle(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = badger.Open(dir, opts); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for k := 0; k < keys; k += 97 {
		if r, err := s.Record(t.Context(), "c", "s", fmt.Sprint("k", k)); err != nil || string(r.Data) != fmt.Sprint(k) {
			t.Fatalf("key %d holds %s, %v", k, r.Data, err)
		}
	}
	if _, err := s.Record(t.Context(), "c", "s", "none"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if m := s.Memory(); m == 0 || m > 20<<10 {
		t.Errorf("its index takes %d bytes", m)
	}
}

// Records are looked up by key while their streams leave the committer's memory and come back, are indexed and merged:
// nobody reads less than what was acknowledged before.
func TestRecordWhileWriting(t *testing.T) {
	s, err := badger.OpenMemory(badger.WithStreamMemory(badger.WithMemRows(badger.Options{}, 50), 8<<10))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := newWriter(t, s, "run_1")
	const streams, keys, rounds = 4, 40, 300
	name := func(i int) store.Stream { return store.Stream(fmt.Sprint("s", i)) }
	var acknowledged [streams][keys]atomic.Uint64
	look := func(i, k int) error {
		least := acknowledged[i][k].Load()
		r, err := s.Record(t.Context(), "c", name(i), fmt.Sprint("k", k))
		if errors.Is(err, store.ErrNotFound) && least == 0 {
			return nil
		}
		if err == nil && (r.Version < least || string(r.Data) != fmt.Sprint(r.Version)) {
			err = fmt.Errorf("version %d holds %s, version %d was acknowledged", r.Version, r.Data, least)
		}
		return err
	}
	stop := make(chan struct{})
	failed := make(chan error, 3)
	for n := range cap(failed) {
		go func() {
			for i := n; ; i++ {
				select {
				case <-stop:
					failed <- nil
					return
				default:
				}
				if err := look(i%streams, i/streams%keys); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	var last [streams]uint64
	for round := range rounds {
		i, b := round*7%streams, new(store.Batch)
		b.Reset(name(i))
		version := last[i]
		for k := range keys {
			if (k+round)%3 == 0 {
				version++
				b.Append(store.Change{Key: fmt.Appendf(nil, "k%d", k), Data: fmt.Append(nil, version)})
			}
		}
		r, err := s.Submit(t.Context(), &store.Commit{Lease: w.lease, Batches: []*store.Batch{b}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Result(); err != nil {
			t.Fatal(err)
		}
		for k := range keys {
			if (k+round)%3 == 0 {
				last[i]++
				acknowledged[i][k].Store(last[i])
			}
			if err := look(i, k); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

// The engine closes and opens again under load, maintenance included, when
// space comes and goes.
func TestSpaceUnderLoad(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 40)
	opts := badger.WithBulkRoll(badger.WithMemRows(badger.Options{Small: true}, 300), 256<<10)
	opts.FreeSpace = func(string) (uint64, error) { return free.Load(), nil }
	s, err := badger.Open(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	w := newWriter(t, s, "run_1")
	var receipts []*store.Receipt
	for i := range 200 {
		if i%40 == 20 {
			free.Store(1)
			time.AfterFunc(100*time.Millisecond, func() { free.Store(1 << 40) })
		}
		receipts = append(receipts, w.commit(func(b *store.Batch) {
			for j := range 200 {
				b.Append(store.Change{Key: fmt.Appendf(nil, "k%d", (i*131+j*7)%3000), Data: fmt.Appendf(nil, `{"i":%d}`, i/3)})
			}
		}))
	}
	for i, r := range receipts {
		if _, err := r.Result(); err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
	}
	w.check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A long value that an earlier version split over several keys is read, and goes
// with all its parts.
func TestSplitValue(t *testing.T) {
	s, err := badger.Open(t.TempDir(), crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	data := []byte(`"` + strings.Repeat("x", 530_000) + `"`)
	if err := s.SplitDocument(store.Replies, "a", data); err != nil {
		t.Fatal(err)
	}
	d, err := s.Document(t.Context(), store.Replies, "a")
	if err != nil || string(d.Data) != string(data) || s.Parts() != 2 {
		t.Fatal(len(d.Data), s.Parts(), err)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), store.Write{Kind: store.Replies, ID: "a", Data: data}); err != nil {
		t.Fatal(err)
	}
	if n := s.Parts(); n != 0 {
		t.Fatalf("%d parts are left", n)
	}
}
