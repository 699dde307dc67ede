package fleet_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
)

// copier is a file system that can share blocks.
func copier(o *fleet.Options) {
	o.Clone = func(to, from *os.File) error {
		_, err := io.Copy(to, from)
		return err
	}
}

// fails has the next starts end as listed, and those after them come up.
func (s *stage) fails(errs ...error) {
	s.next = func() (page.Browser, *fake, error) {
		f := newFake()
		if len(errs) > 0 {
			err := errs[0]
			errs = errs[1:]
			return nil, f, err
		}
		return f, f, nil
	}
}

// A profile whose browser dies twice in a row is what it was when it opened
// last, once, and the timeline says so. Caches, links and the browser's own lock are
// not copied.
func TestProfileIsRestored(t *testing.T) {
	s := newStage(t, copier)
	defer end(t, s)
	ctx := context.Background()
	profile := filepath.Join(s.dir, "c", "p")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(profile, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	restored := func() bool {
		t.Helper()
		s.mu.Lock()
		defer s.mu.Unlock()
		last := s.events[len(s.events)-1]
		if last.Type != fleet.EventReady {
			t.Fatalf("the last event is %+v", last)
		}
		return last.Restored
	}
	open := func() bool {
		t.Helper()
		got := acquire(t, s, s.request("c", "p"))
		got.Ready()
		was := restored()
		got.Release(ctx)
		return was
	}
	open() // of a profile that is new there is no copy
	s.fails(page.ErrLost, page.ErrLost)
	if _, err := s.Acquire(ctx, s.request("c", "p")); code(err) != "surface_start_failed" {
		t.Fatalf("restored of nothing: %v", err)
	}
	s.fails()
	write("Default/Cookies", "signed in")
	write("Default/Code Cache/js", "large")
	if err := os.Symlink("/etc/passwd", filepath.Join(profile, "SingletonLock")); err != nil {
		t.Fatal(err)
	}
	if open() {
		t.Error("restored without need")
	}
	write("Default/Cookies", "broken")
	s.fails(page.ErrLost) // once is not twice
	if open() {
		t.Error("restored after one loss")
	}
	write("Default/Cookies", "broken more")
	s.fails(page.ErrLost, page.ErrLost)
	if !open() {
		t.Error("not restored")
	}
	// what opened last
	if text, err := os.ReadFile(filepath.Join(profile, "Default/Cookies")); err != nil || string(text) != "broken" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(profile, "Default/Code Cache")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a cache was copied: %v", err)
	}
	if fi, err := os.Stat(profile); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi, err)
	}
	s.fails(page.ErrLost, page.ErrLost)
	if _, err := s.Acquire(ctx, s.request("c", "p")); code(err) != "surface_start_failed" {
		t.Errorf("restored twice from one copy: %v", err)
	}
	if err := s.Forget(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	if left := s.left(t, ""); slices.ContainsFunc(left,
		func(p string) bool { return filepath.Base(filepath.Dir(p)) == "c" }) {
		t.Errorf("left of a connection that is gone: %v", left)
	}
}

// Where the file system shares no blocks nothing is copied, nothing is left and
// nothing is restored.
func TestNoCopyWithoutSharing(t *testing.T) {
	s := newStage(t, func(o *fleet.Options) { o.Clone = func(_, _ *os.File) error { return errors.ErrUnsupported } })
	defer end(t, s)
	acquire(t, s, s.request("c", "p")).Release(context.Background())
	if err := os.WriteFile(filepath.Join(s.dir, "c", "p", "Cookies"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	acquire(t, s, s.request("c", "p")).Release(context.Background())
	if left, err := filepath.Glob(filepath.Join(s.dir, "c", ".cop*")); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	s.fails(page.ErrLost, page.ErrLost)
	if _, err := s.Acquire(context.Background(), s.request("c", "p")); code(err) != "surface_start_failed" {
		t.Errorf("restored: %v", err)
	}
}
