//go:build unix

package badger_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// The second process is told who the first is.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	s, err := badger.Open(dir, badger.Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	var busy *store.BusyError
	if _, err := badger.Open(dir, badger.Options{Small: true}); !errors.As(err, &busy) || busy.PID != os.Getpid() ||
		busy.Host == "" || busy.Dir != dir {
		t.Fatalf("second open: %v", err)
	}
	var holder struct {
		StartedAt time.Time `json:"started_at"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "lock"))
	if err != nil || json.Unmarshal(text, &holder) != nil || holder.StartedAt.IsZero() {
		t.Fatalf("lock says %s, %v", text, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := badger.Open(dir, badger.Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	if again.Unclean() {
		t.Error("unclean after Close")
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// Nothing in the data directory is readable by others.
func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	grow(t, dir, 1, 10)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestURL(t *testing.T) {
	for _, bad := range []string{"", "memory", "redis:x", "badger:", "memory:x", "memory:?nonsense=1",
		"memory:?per_stream=maybe", "memory:?memory=huge"} {
		if s, err := badger.OpenURL(bad, badger.Options{}); err == nil {
			t.Errorf("%q opened", bad)
			s.Close()
		}
	}
	for url, perStream := range map[string]bool{
		"memory:": false, "memory:?fail_state=s&per_stream=1&memory=small": true,
		"badger:" + t.TempDir() + "?memory=small&allow_network_fs=1": false,
	} {
		s, err := badger.OpenURL(url, badger.Options{})
		if err != nil {
			t.Fatalf("%q: %v", url, err)
		}
		if s.PerStream() != perStream {
			t.Errorf("%q: per stream = %v", url, s.PerStream())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Little space refuses runs, less holds records back, still less halts the
// engine; all of it ends by itself.
func TestSpace(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 40)
	opts := badger.Options{Small: true, Ballast: 1 << 20,
		FreeSpace: func(string) (uint64, error) { return free.Load(), nil }}
	dir := t.TempDir()
	s, err := badger.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "ballast")); err != nil || info.Size() != 1<<20 {
		t.Fatalf("ballast: %v, %v", info, err)
	}
	w := newWriter(t, s, "run_1")
	one := func(k string) func(*store.Batch) {
		return func(b *store.Batch) { b.Append(store.Change{Key: []byte(k), Data: []byte(`{}`)}) }
	}
	if _, err := w.commit(one("a")).Result(); err != nil {
		t.Fatal(err)
	}

	free.Store(400 << 20)
	if _, err := s.Acquire(t.Context(), store.Run{ID: "run_2", ConnectionID: "d"}, "h", "b",
		time.Hour); !errors.Is(err, store.ErrNoSpace) {
		t.Fatalf("start below store.free_start: %v", err)
	}
	if _, err := w.commit(one("b")).Result(); err != nil {
		t.Fatalf("records below store.free_start: %v", err)
	}

	free.Store(100 << 20)
	s.MeasureSpace()
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan error)
	go func() {
		b := new(store.Batch)
		b.Reset("s")
		one("c")(b)
		_, err := s.Submit(ctx, &store.Commit{Lease: w.lease, Batches: []*store.Batch{b}})
		held <- err
	}()
	// Commits without records pass: a run can end.
	r, err := s.Submit(t.Context(),
		&store.Commit{Lease: w.lease, Events: []store.Event{{Type: "run.progress", RunID: "run_1"}}})
	if err == nil {
		_, err = r.Result()
	}
	if err != nil {
		t.Fatalf("event below store.free_ingest: %v", err)
	}
	cancel()
	if err := <-held; !errors.Is(err, store.ErrNoSpace) && err != nil {
		t.Fatalf("records below store.free_ingest: %v", err)
	} else if err == nil {
		t.Fatal("records passed below store.free_ingest")
	}

	free.Store(1 << 20)
	r, err = s.Submit(t.Context(),
		&store.Commit{Lease: w.lease, Events: []store.Event{{Type: "run.progress", RunID: "run_1"}}})
	if err != nil {
		t.Fatal(err)
	}
	for { // until the engine is halted, which gives the ballast back
		if _, err := os.Stat(filepath.Join(dir, "ballast")); os.IsNotExist(err) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	if err := s.Stalled(); !errors.Is(err, store.ErrNoSpace) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("a halted store says: %v", err)
	}
	w.s = s
	w.check(s) // it is read while nothing is written
	select {
	case <-r.Done():
		t.Fatal("something was written")
	default:
	}
	free.Store(1 << 40)
	if _, err := r.Result(); err != nil {
		t.Fatalf("commit held while space was out: %v", err)
	}
	if err := s.Stalled(); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	w.s = s
	w.check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Close while the disk is full refuses what waits instead of hanging.
func TestCloseWithoutSpace(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 40)
	s, err := badger.Open(t.TempDir(),
		badger.Options{Small: true, FreeSpace: func(string) (uint64, error) { return free.Load(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	w := newWriter(t, s, "run_1")
	free.Store(1)
	r, err := s.Submit(t.Context(),
		&store.Commit{Lease: w.lease, Events: []store.Event{{Type: "run.progress", RunID: "run_1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Result(); !errors.Is(err, store.ErrNoSpace) {
		t.Fatalf("commit: %v", err)
	}
}

// A failure before the transaction leaves the store as it was, and the
// next commit passes; a failure after it stops the store, and opening it again
// finds the commit whole.
func TestFaults(t *testing.T) {
	boom := errors.New("boom")
	for _, point := range []string{badger.FaultBeforeDB, badger.FaultTerminalBefore, badger.FaultAfterDB,
		badger.FaultAfterWitness, badger.FaultBeforeAck, badger.FaultTerminalAfter} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			var armed atomic.Bool
			opts := crashOptions
			opts.Fault = func(at string) error {
				if at == point && armed.CompareAndSwap(true, false) {
					return boom
				}
				return nil
			}
			s, err := badger.Open(dir, opts)
			if err != nil {
				t.Fatal(err)
			}
			l, err := s.Acquire(t.Context(), store.Run{ID: "run_1", ConnectionID: "a"}, "h", "b", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			commit := func(n int) error {
				r, err := s.Submit(t.Context(), &store.Commit{
					Lease: l, Batches: []*store.Batch{crashBatch(n)}, End: strings.HasPrefix(point, "terminal") && n > 5,
					Events: []store.Event{{Type: "run.batch_ingested", RunID: "run_1"}},
				})
				if err == nil {
					_, err = r.Result()
				}
				return err
			}
			for n := 1; n <= 5; n++ {
				if err := commit(n); err != nil {
					t.Fatal(err)
				}
			}
			armed.Store(true)
			if err := commit(6); !errors.Is(err, boom) {
				t.Fatalf("commit at the fault: %v", err)
			}
			want := 5
			if point == badger.FaultBeforeDB || point == badger.FaultTerminalBefore {
				(&writer{t: t, s: s, model: crashModel(5)}).check2("a")
				if err := commit(6); err != nil {
					t.Fatalf("commit after a clean failure: %v", err)
				}
				want = 6
			} else {
				if err := commit(7); !errors.Is(err, boom) {
					t.Fatalf("commit after a failure of unknown outcome: %v", err)
				}
				(&writer{t: t, s: s, model: crashModel(5)}).compare("a") // not acknowledged, not shown
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if want == 5 {
				want = 6 // it had reached the engine
			}
			opts.Fault = nil
			if s, err = badger.Open(dir, opts); err != nil || s.Damage() != nil {
				t.Fatal(err, s.Damage())
			}
			(&writer{t: t, s: s, model: crashModel(want)}).check2("a")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
