package fleet_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
)

func code(err error) string {
	var r *engine.Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

func acquire(t *testing.T, s *stage, r fleet.Request) *fleet.Surface {
	t.Helper()
	got, err := s.Acquire(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A bad name is refused before a slot, a lock, a directory or a process is
// touched.
func TestNames(t *testing.T) {
	s := newStage(t, nil)
	defer end(t, s)
	before := s.left(t, "")
	for _, name := range []string{"", "a.b", "../x", "a/b", "a b", "é", "a\x00", "a\n", ".", "..", "~",
		strings.Repeat("a", 65), "%41", "C:\\x"} {
		_, err := s.Acquire(context.Background(), s.request("c", name))
		if code(err) != "profile_name_invalid" {
			t.Errorf("%q: %v", name, err)
		}
		var r *engine.Refusal
		if errors.As(err, &r) && r.Message != "profile name required, must be [A-Za-z0-9_-]+" {
			t.Errorf("%q: message %q", name, r.Message)
		}
	}
	if after := s.left(t, ""); !slices.Equal(before, after) {
		t.Errorf("directories came of refused names: %v", after)
	}
	if len(s.started) != 0 || len(s.gates) != 0 || len(s.types()) != 0 {
		t.Errorf("started %d, gates %d, events %v", len(s.started), len(s.gates), s.types())
	}
	for _, name := range []string{"a", "A_b-9", strings.Repeat("a", 64)} {
		if r := fleet.CheckName(name); r != nil {
			t.Errorf("%q: %v", name, r)
		}
	}
}

// Two names of a connection that differ in case only.
func TestNamesFold(t *testing.T) {
	s := newStage(t, nil)
	defer end(t, s)
	acquire(t, s, s.request("c", "Work")).Release(context.Background())
	if _, err := s.Acquire(context.Background(), s.request("c", "work")); code(err) != "profile_name_invalid" {
		t.Errorf("a name that differs in case: %v", err)
	}
	acquire(t, s, s.request("d", "work")).Release(context.Background()) // another connection's
	acquire(t, s, s.request("c", "Work")).Release(context.Background())
}

// Where the name is from.
func TestName(t *testing.T) {
	for _, c := range [][5]string{{"r", "s", "m", "c", "r"}, {"", "s", "m", "c", "s"}, {"", "", "m", "c", "m"},
		{"", "", "", "c", "c"}} {
		if got := fleet.Name(c[0], c[1], c[2], c[3]); got != c[4] {
			t.Errorf("%v: %q", c, got)
		}
	}
}

// Nothing leads out of the directory, whatever a connection is called or what
// lies in the place of a profile.
func TestPaths(t *testing.T) {
	s := newStage(t, nil)
	defer end(t, s)
	for _, connection := range []string{"", ".", "..", "../x", "a/b", ".temporary", "/etc", "a\x00b", ".uid"} {
		if _, err := s.Acquire(context.Background(), s.request(connection, "p")); code(err) != "surface_start_failed" {
			t.Errorf("%q: %v", connection, err)
		}
	}
	outside := t.TempDir()
	if err := os.MkdirAll(filepath.Join(s.dir, "c"), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(s.dir, "c", "p")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(s.dir, "d")); err != nil {
		t.Fatal(err)
	}
	for _, connection := range []string{"c", "d"} {
		if _, err := s.Acquire(context.Background(), s.request(connection, "p")); code(err) != "surface_start_failed" {
			t.Errorf("%s: a link in the place of a directory: %v", connection, err)
		}
	}
	if len(s.started) != 0 {
		t.Errorf("started %d", len(s.started))
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("outside: %v %v", entries, err)
	}
}

// The steps in their order, and what is left after them.
func TestLife(t *testing.T) {
	s := newStage(t, nil)
	defer end(t, s)
	got := acquire(t, s, s.request("c", "p"))
	if got.State() != fleet.Starting {
		t.Errorf("state %s", got.State())
	}
	got.Establish(true)
	if got.State() != fleet.Establishing {
		t.Errorf("state %s", got.State())
	}
	got.Establish(false)
	got.Ready()
	if got.State() != fleet.Ready {
		t.Errorf("state %s", got.State())
	}
	got.Owner(true)
	if got.State() != fleet.OwnerControl {
		t.Errorf("state %s", got.State())
	}
	got.Owner(false)
	if !strings.HasPrefix(got.ID(), "sf_") {
		t.Errorf("id %q", got.ID())
	}
	fi, err := os.Stat(filepath.Join(s.dir, "c", "p"))
	if err != nil || fi.Mode() != fs.ModeDir|0o700 {
		t.Errorf("the profile is %v %v", fi.Mode(), err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { got.Release(context.Background()) })
	}
	wg.Wait()
	if got.State() != fleet.Closed {
		t.Errorf("state %s", got.State())
	}
	if want := []string{"requested", "starting", "ready", "released"}; !slices.Equal(s.types(), want) {
		t.Errorf("events %v", s.types())
	}
	if s.fakes[0].closed != 1 || s.gates[0].closed != 1 || s.gates[0].bound != 1 {
		t.Errorf("closed %d times, gate %+v", s.fakes[0].closed, s.gates[0])
	}
	if left := s.left(t, ".temporary"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if f := s.Facts(); f.Live != 0 {
		t.Errorf("%+v", f)
	}
}

// Four at once; the fifth waits its turn, owners' runs before scheduled ones,
// and no longer than 120 s.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer end(t, s)
		var held []*fleet.Surface
		for _, c := range []string{"a", "b", "c", "d"} {
			held = append(held, acquire(t, s, s.request(c, "p")))
		}
		order := make(chan string, 4)
		var wg sync.WaitGroup
		wait := func(name string, scheduled bool) {
			r := s.request(name, "p")
			r.Scheduled = scheduled
			wg.Go(func() {
				got, err := s.Acquire(context.Background(), r)
				order <- name + code(err)
				if err == nil {
					got.Release(context.Background())
				}
			})
			synctest.Wait()
		}
		wait("planned", true)
		wait("owner1", false)
		wait("owner2", false)
		held[0].Release(context.Background())
		wg.Wait()
		close(order)
		var got []string
		for name := range order {
			got = append(got, name)
		}
		if want := []string{"owner1", "owner2", "planned"}; !slices.Equal(got, want) {
			t.Errorf("order %v", got)
		}
		held[0] = acquire(t, s, s.request("a", "p"))
		began := time.Now()
		_, err := s.Acquire(context.Background(), s.request("e", "p"))
		if code(err) != "browser_capacity" || time.Since(began) != 120*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if types := s.types(); types[len(types)-2] != "queued" || types[len(types)-1] != "failed" {
			t.Errorf("events %v", types)
		}
		for _, h := range held {
			h.Release(context.Background())
		}
		acquire(t, s, s.request("e", "p")).Release(context.Background()) // no slot was lost
	})
}

// One profile, one process; a second run waits and then is told.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer end(t, s)
		first := acquire(t, s, s.request("c", "p"))
		began := time.Now()
		if _, err := s.Acquire(context.Background(), s.request("c", "p")); code(err) != "profile_in_use" ||
			time.Since(began) != 120*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		acquire(t, s, s.request("c", "other")).Release(context.Background())
		go func() {
			time.Sleep(time.Second)
			first.Release(context.Background())
		}()
		acquire(t, s, s.request("c", "p")).Release(context.Background())
	})
}

// Two hosts of one directory do not open one profile twice either.
func TestLockOfAnotherHost(t *testing.T) {
	s := newStage(t, nil)
	defer end(t, s)
	other := newStage(t, func(o *fleet.Options) { o.Dir = s.dir })
	defer end(t, other)
	first := acquire(t, s, s.request("c", "p"))
	ctx, stop := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer stop()
	if _, err := other.Acquire(ctx, other.request("c", "p")); err == nil {
		t.Error("a profile was opened twice")
	}
	if len(other.started) != 0 {
		t.Error("a browser was started without the lock")
	}
	first.Release(context.Background())
	acquire(t, other, other.request("c", "p")).Release(context.Background())
}

// What a killed browser left is removed, and no other file is.
func TestSingletons(t *testing.T) {
	s := newStage(t, nil)
	defer end(t, s)
	dir := filepath.Join(s.dir, "c", "p")
	acquire(t, s, s.request("c", "p")).Release(context.Background())
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "SingletonLock")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"SingletonCookie", "SingletonSocket", "Cookies", "SingletonOther"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	acquire(t, s, s.request("c", "p")).Release(context.Background())
	if got := s.left(t, "c/p"); !slices.Equal(got, []string{"Cookies", "SingletonOther"}) {
		t.Errorf("left %v", got)
	}
	if _, err := os.Stat(victim); err != nil {
		t.Error("a link was followed")
	}
}

// A browser that ends by itself at once is started again, once.
func TestSecondStart(t *testing.T) {
	for _, c := range []struct {
		name  string
		fail  []error // of each start, nil for one that works
		code  string
		times int
	}{
		{"once", []error{page.ErrLost, nil}, "", 2},
		{"twice", []error{page.ErrLost, page.ErrLost, nil}, "surface_start_failed", 2},
		{"another reason", []error{errors.New("no"), nil}, "surface_start_failed", 1},
		{"missing", []error{&engine.Refusal{Code: "browser_missing"}, nil}, "browser_missing", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, nil)
			defer end(t, s)
			n := 0
			s.next = func() (page.Browser, *fake, error) {
				err := c.fail[n]
				n++
				if err != nil {
					return nil, nil, err
				}
				f := newFake()
				return f, f, nil
			}
			got, err := s.Acquire(context.Background(), s.request("c", "p"))
			if code(err) != c.code || n != c.times {
				t.Fatalf("%v after %d starts", err, n)
			}
			if err == nil {
				got.Release(context.Background())
			}
			for i, g := range s.gates {
				if g.closed != 1 {
					t.Errorf("gate %d: closed %d times", i, g.closed)
				}
			}
			if left := s.left(t, ".temporary"); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
			s.next = nil
			acquire(t, s, s.request("c", "p")).Release(context.Background()) // lock and slot are free
		})
	}
}

// A browser that does not answer is not ready, and is ended.
func TestNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer end(t, s)
		f := newFake()
		f.ping = page.ErrHung
		s.next = func() (page.Browser, *fake, error) { return f, f, nil }
		began := time.Now()
		_, err := s.Acquire(context.Background(), s.request("c", "p"))
		if code(err) != "surface_start_failed" || time.Since(began) > 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if f.closed != 1 {
			t.Errorf("closed %d times", f.closed)
		}
	})
}

// A browser that is silent because the machine is busy is asked again, as long as
// patience lasts, and no longer.
func TestReadyLate(t *testing.T) {
	for _, c := range []struct {
		silent, want int
		code         string
	}{{2, 3, ""}, {9, 3, "surface_start_failed"}} {
		asked := 0
		s := newStage(t, func(o *fleet.Options) {
			o.Patience = func(d time.Duration) time.Duration { return 3 * d }
			o.Check = func(context.Context, page.Browser) fleet.Probe {
				if asked++; asked <= c.silent {
					return fleet.Probe{Code: fleet.CodeTimeout}
				}
				return fleet.Probe{OK: true}
			}
		})
		got, err := s.Acquire(t.Context(), s.request("c", "p"))
		if code(err) != c.code || asked != c.want {
			t.Errorf("silent %d times: %v, asked %d times", c.silent, err, asked)
		}
		if err == nil {
			got.Release(context.Background())
		}
		end(t, s)
	}
}

// A run that is cancelled while it waits leaves nothing.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(o *fleet.Options) { o.Max = 1 })
		defer end(t, s)
		first := acquire(t, s, s.request("c", "p"))
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		if _, err := s.Acquire(ctx, s.request("d", "p")); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		first.Release(context.Background())
		acquire(t, s, s.request("d", "p")).Release(context.Background())
	})
}

// Temporary profiles go with their browser, and those of a host that was killed with
// the next host's start.
func TestTemporary(t *testing.T) {
	s := newStage(t, nil)
	r := s.request("c", "p")
	r.Persistent = false
	got := acquire(t, s, r)
	if len(s.left(t, ".temporary")) != 2 { // profile and home
		t.Errorf("temporary: %v", s.left(t, ".temporary"))
	}
	if _, err := os.Stat(filepath.Join(s.dir, "c", "p")); err == nil {
		t.Error("a temporary profile was kept by name")
	}
	_ = got
	next := newStage(t, func(o *fleet.Options) { o.Dir = s.dir }) // as after a kill
	defer end(t, next)
	if left := next.left(t, ".temporary"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	end(t, s)
}

// A connection's profiles go with it, but not from under a run.
func TestForget(t *testing.T) {
	s := newStage(t, nil)
	defer end(t, s)
	got := acquire(t, s, s.request("c", "p"))
	if err := s.Forget(context.Background(), "c"); code(err) != "profile_in_use" {
		t.Errorf("%v", err)
	}
	got.Release(context.Background())
	acquire(t, s, s.request("d", "p")).Release(context.Background())
	for _, id := range []string{"c", "never", "..", "../d"} {
		if err := s.Forget(context.Background(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if got := s.left(t, ""); !slices.Equal(got, []string{".temporary", "d"}) {
		t.Errorf("left %v", got)
	}
}
