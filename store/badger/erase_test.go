//go:build unix

package badger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// erasable is a connection with more than one step's worth of everything: index
// runs, segments, gaps, a timeline. Another one stands beside it.
func erasable(t *testing.T, s *badger.Store) {
	t.Helper()
	for _, id := range []store.ConnectionID{"a", "b"} {
		if err := s.PutConnection(t.Context(), store.Connection{ID: id}); err != nil {
			t.Fatal(err)
		}
		l, err := s.Acquire(t.Context(), store.Run{ID: store.RunID("run_" + id), ConnectionID: id}, "h", "b", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 60; n++ {
			c := &store.Commit{
				Lease: l, Batches: []*store.Batch{crashBatch(n)}, Advance: []store.State{{Stream: "s", Cursor: []byte("1")}},
				End: n == 60,
			}
			for i := range 10 {
				c.Events = append(c.Events, store.Event{Type: "run.progress", RunID: l.RunID})
				c.Gaps = append(c.Gaps, store.DetailGap{ID: fmt.Sprint("gap_", n, i), Stream: "s", Ref: fmt.Sprint(n, "/", i)})
			}
			r, err := s.Submit(t.Context(), c)
			if err == nil {
				_, err = r.Result()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// An erasure is what a test interrupts.
type erasure struct {
	erase func(*badger.Store) error
	seen  func(*badger.Store) int // what readers see of the thing
	kept  func(*badger.Store) int // keys of it
	whole int                     // seen of all of it
}

// Erasing is resumed wherever the process ended: what readers see is all or
// nothing, Verify and images are right at any step, and nothing is left in the end.
func TestEraseInterrupted(t *testing.T) {
	connection := erasure{
		erase: func(s *badger.Store) error { return s.DeleteConnection(t.Context(), "a", true) },
		seen: func(s *badger.Store) int {
			page, err1 := s.Records(t.Context(), store.RecordQuery{Connection: "a", Stream: "s", Deleted: true, Limit: 1000})
			states, err2 := s.States(t.Context(), "a", "")
			gaps, err3 := s.Gaps(t.Context(), "a", "", "")
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Fatal(err)
			}
			return len(page.Records) + len(states) + len(gaps)
		},
		kept:  func(s *badger.Store) int { return s.Kept("a") },
		whole: 1601,
	}
	timeline := erasure{
		erase: func(s *badger.Store) error { return s.Prune(t.Context(), "run_a") },
		seen: func(s *badger.Store) int {
			events, err := s.Events(t.Context(), "run_a", 0, 1000)
			if err != nil {
				t.Fatal(err)
			}
			return len(events)
		},
		kept:  func(s *badger.Store) int { return s.KeptEvents("run_a") },
		whole: 600,
	}
	made := t.TempDir()
	s, err := badger.Open(made, crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	erasable(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, point := range []string{badger.FaultBeforeDB, badger.FaultAfterDB} {
		for name, e := range map[string]erasure{"connection": connection, "timeline": timeline} {
			t.Run(name+"/"+point, func(t *testing.T) {
				hit := int64(1)
				for e.interrupted(t, made, point, hit) {
					if hit++; !campaigning() {
						hit += hit / 2
					}
				}
				if hit < 5 {
					t.Fatalf("it took %d commits only", hit-1)
				}
			})
		}
	}
}

// interrupted fails the commit at the n-th hit of a fault point, in a copy of a
// store; false when the erasure was over before.
func (e erasure) interrupted(t *testing.T, made, point string, n int64) bool {
	t.Helper()
	boom := errors.New("boom")
	var left atomic.Int64
	opts := crashOptions
	opts.Fault = func(at string) error {
		if at == point && left.Load() > 0 && left.Add(-1) == 0 {
			return boom
		}
		return nil
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
		t.Fatal(err)
	}
	s, err := badger.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	left.Store(n)
	failed := e.erase(s)
	left.Store(0)
	if failed != nil && !errors.Is(failed, boom) {
		t.Fatal(failed)
	}
	if seen := e.seen(s); seen != 0 && (seen != e.whole || n > 1) {
		t.Fatalf("after %d commits %d of %d are left to see", n-1, seen, e.whole)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = badger.Open(dir, crashOptions); err != nil || s.Damage() != nil {
		t.Fatal(err, s.Damage())
	}
	defer s.Close()
	image(t, s)
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.seen(s) == e.whole && n == 1 { // nothing was begun
		if err := e.erase(s); err != nil {
			t.Fatal(err)
		}
	}
	if kept := e.kept(s); kept != 0 {
		t.Fatalf("after %d commits and another start %d keys are left", n-1, kept)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	(&writer{t: t, s: s, model: crashModel(60)}).compare("b")
	return failed != nil
}

// Erased records leave the disk, also those in a file that another connection
// writes to.
// A fuse is a context that ends when it was asked so often whether it has.
type fuse struct {
	context.Context
	left int
	done chan struct{}
}

func (f *fuse) Done() <-chan struct{} { return f.done }

func (f *fuse) Err() error {
	if f.left--; f.left == 0 {
		close(f.done)
	}
	if f.left <= 0 {
		return context.Canceled
	}
	return nil
}

// Whoever erases may give up anywhere. An image has nothing half erased: a store
// that is loaded from it is the same when it is opened again, which finishes what it
// finds.
func TestImageOfErased(t *testing.T) {
	gaveUp := 0
	for n := 1; ; n++ {
		s, err := badger.Open(t.TempDir(), crashOptions)
		if err != nil {
			t.Fatal(err)
		}
		erasable(t, s)
		ctx := &fuse{t.Context(), n, make(chan struct{})}
		failed := s.DeleteConnection(ctx, "a", true)
		if failed != nil {
			gaveUp++
		}
		image, counters := imageOf(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		moved, err := badger.Open(dir, crashOptions)
		if err != nil {
			t.Fatal(err)
		}
		if err := moved.Load(t.Context(), bytes.NewReader(image)); err != nil {
			t.Fatal(err)
		}
		_, err = moved.Connection(t.Context(), "a")
		if gone, kept := errors.Is(err, store.ErrNotFound), moved.Kept("a"); gone && kept > 0 {
			t.Errorf("given up at %d: the image has %d keys of what was erased", n, kept)
		}
		if err := moved.Close(); err != nil {
			t.Fatal(err)
		}
		if moved, err = badger.Open(dir, crashOptions); err != nil {
			t.Fatal(err)
		}
		again, same := imageOf(t, moved)
		if !bytes.Equal(image, again) || !cmp.Equal(counters, same) {
			t.Errorf("given up at %d: the copy differs when it is opened again", n)
		}
		if err := moved.Close(); err != nil {
			t.Fatal(err)
		}
		if failed == nil {
			break
		}
	}
	if gaveUp < 3 {
		t.Errorf("it gave up at %d points", gaveUp)
	}
}

func TestEraseFreesSpace(t *testing.T) {
	for _, beside := range []bool{false, true} {
		dir := t.TempDir()
		s, err := badger.Open(dir, badger.Options{Small: true})
		if err != nil {
			t.Fatal(err)
		}
		w := newWriter(t, s, "run_1")
		for n := range 40 {
			r := w.commit(func(b *store.Batch) {
				for i := range 100 {
					b.Append(store.Change{Key: fmt.Appendf(nil, "k%d-%d", n, i), Data: fmt.Appendf(nil, `"secret-%01000d"`, i)})
				}
			})
			if _, err := r.Result(); err != nil {
				t.Fatal(err)
			}
			if n == 20 && beside {
				erasable(t, s)
			}
		}
		end(t, s, w.lease)
		if n := bulkSize(t, dir); n < 4e6 {
			t.Fatalf("%d bytes of bulk only", n)
		}
		if err := s.DeleteConnection(t.Context(), "c", true); err != nil {
			t.Fatal(err)
		}
		for range 3 { // what a job leaves behind is reaped with the next commit
			if err := s.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := bulkSize(t, dir); n > 2e6 {
			t.Errorf("%d bytes of bulk are left, beside another %v", n, beside)
		}
		if err := s.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// image copies s and loads the copy.
func image(t *testing.T, s *badger.Store) {
	t.Helper()
	i, err := s.Image(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	var b bytes.Buffer
	if err := i.(store.Copier).Copy(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	again, err := badger.OpenMemory(crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Load(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := again.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
}
