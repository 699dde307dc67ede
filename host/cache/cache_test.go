package cache_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/cache"
	"github.com/sluicehost/sluice/store"
)

// A world has a directory of 100 bytes, and knows what was let go of.
type world struct {
	*testing.T
	path string
	dir  *cache.Dir[string]
	shut []string
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, path: filepath.Join(t.TempDir(), "copies")}
	w.dir = w.open()
	return w
}

func (w *world) open() *cache.Dir[string] {
	return cache.New(cache.Options{Dir: w.path, Most: 100, Setting: "copies.bytes", Code: "query_limit"},
		func(s *string) error {
			if *s != "" {
				w.shut = append(w.shut, *s)
				*s = ""
			}
			return nil
		})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) use(id store.ConnectionID) *cache.File[string] {
	w.Helper()
	f, err := w.dir.Use(id)
	w.must(err)
	return f
}

// grow has a connection take so many bytes.
func (w *world) grow(id store.ConnectionID, n int) error {
	w.Helper()
	f := w.use(id)
	defer f.Release()
	f.Lock()
	defer f.Unlock()
	f.Value = string(id)
	w.must(os.WriteFile(f.Path, make([]byte, n), 0o600))
	return f.Fit()
}

func (w *world) have(want ...string) {
	w.Helper()
	entries, err := os.ReadDir(w.path)
	w.must(err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		w.Errorf("have %v, want %v", got, want)
	}
}

func (w *world) refused(err error) {
	w.Helper()
	var r *host.Refusal
	if !errors.As(err, &r) || r.Code != "query_limit" || !strings.Contains(r.Message, "copies.bytes") {
		w.Errorf("%v, want a refusal that names the setting", err)
	}
}

// TestOldestGoes: who was used last stays, also after a restart.
func TestOldestGoes(t *testing.T) {
	w := newWorld(t)
	for _, id := range []store.ConnectionID{"a", "b", "c"} {
		w.must(w.grow(id, 30))
	}
	w.must(os.WriteFile(filepath.Join(w.path, "b.db-wal"), make([]byte, 10), 0o600))
	w.use("a").Release()
	w.must(w.grow("d", 30)) // 130 of 100
	w.have("a.db", "c.db", "d.db")
	if !slices.Equal(w.shut, []string{"b"}) {
		t.Errorf("let go of %v", w.shut)
	}
	for i, name := range []string{"c.db", "a.db", "d.db"} { // d was used last
		at := time.Unix(int64(1_700_000_000+i), 0)
		w.must(os.Chtimes(filepath.Join(w.path, name), at, at))
	}
	w.dir = w.open()
	w.must(w.grow("e", 60))
	w.have("d.db", "e.db")
}

// TestTooLarge: one connection that does not fit takes no other's place, one that is in use
// stays, and what is refused goes on when there is more room.
func TestTooLarge(t *testing.T) {
	w := newWorld(t)
	w.must(w.grow("small", 40))
	f := w.use("small")
	w.refused(w.grow("large", 90))
	w.have("large.db", "small.db")
	f.Release()
	w.must(w.grow("large", 90))
	w.have("large.db")
	w.refused(w.grow("large", 101))
	w.must(w.grow("small", 40)) // what is too large was used before
	w.have("small.db")
}

// TestForget: a file is let go of, and removed with all that SQLite keeps beside it.
func TestForget(t *testing.T) {
	w := newWorld(t)
	w.must(w.dir.Forget("none"))
	w.must(w.grow("a", 10))
	for _, beside := range []string{"-wal", "-shm"} {
		w.must(os.WriteFile(filepath.Join(w.path, "a.db"+beside), nil, 0o600))
	}
	w.must(w.dir.Forget("a"))
	w.have()
	if !slices.Equal(w.shut, []string{"a"}) {
		t.Errorf("let go of %v", w.shut)
	}
}

// TestIdle: files that nobody uses are let go of, and stay on the disk.
func TestIdle(t *testing.T) {
	w := newWorld(t)
	for _, id := range []store.ConnectionID{"a", "b", "c"} {
		w.must(w.grow(id, 10))
	}
	f := w.use("a")
	defer f.Release()
	w.must(w.dir.Idle(1))
	w.have("a.db", "b.db", "c.db")
	if !slices.Equal(w.shut, []string{"b"}) {
		t.Errorf("let go of %v", w.shut)
	}
}

// TestTemporary: without a directory there is one for as long as it is open.
func TestTemporary(t *testing.T) {
	d := cache.New[int](cache.Options{}, nil)
	if err := d.Forget("a"); err != nil {
		t.Fatal(err)
	}
	f, err := d.Use("a")
	if err != nil {
		t.Fatal(err)
	}
	f.Release()
	dir := filepath.Dir(f.Path)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", dir, err)
	}
}
