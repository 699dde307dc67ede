//go:build unix

package fleet_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/browser/fleet"
)

func release(s *fleet.Surface) { s.Release(context.Background()) }

// A connection's own browser is kept for its next run, without its tabs and
// without a network, and for no other.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(o *fleet.Options) { o.Linger = time.Minute })
		defer end(t, s)
		s.linger = true
		release(acquire(t, s, s.request("c", "p")))
		if s.gates[0].loose != 1 || s.fakes[0].resets != 1 || s.fakes[0].closed != 0 {
			t.Errorf("gate %+v, browser %+v", s.gates[0], s.fakes[0])
		}
		release(acquire(t, s, s.request("d", "p")))
		release(acquire(t, s, s.request("c", "q")))
		if len(s.fakes) != 3 {
			t.Fatalf("%d browsers: one was handed to another connection or profile", len(s.fakes))
		}
		got := acquire(t, s, s.request("c", "p"))
		if !got.Reused() || len(s.fakes) != 3 || s.gates[0].bound != 2 {
			t.Errorf("reused %t, %d browsers, gate %+v", got.Reused(), len(s.fakes), s.gates[0])
		}
		release(got)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		for i, f := range s.fakes {
			if f.closed != 1 {
				t.Errorf("browser %d was closed %d times", i, f.closed)
			}
		}
		if got := acquire(t, s, s.request("c", "p")); got.Reused() {
			t.Error("an ended browser was reused")
		}
	})
}

// A browser that died while it lingered, or is of another kind, is not used.
func TestLingerUseless(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*fake, *fleet.Request)
	}{
		{"dead", func(f *fake, _ *fleet.Request) { f.kill() }},
		{"of another kind", func(_ *fake, r *fleet.Request) { r.Kind.Downloads = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, func(o *fleet.Options) { o.Linger = time.Minute })
				defer end(t, s)
				s.linger = true
				r := s.request("c", "p")
				release(acquire(t, s, r))
				c.do(s.fakes[0], &r)
				got := acquire(t, s, r)
				if got.Reused() || len(s.fakes) != 2 || s.fakes[0].closed != 1 {
					t.Errorf("reused %t, %d browsers, closed %d", got.Reused(), len(s.fakes), s.fakes[0].closed)
				}
			})
		})
	}
}

// What lingers makes room for what is used.
func TestLingerMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(o *fleet.Options) { o.Linger, o.Max = time.Minute, 2 })
		defer end(t, s)
		s.linger = true
		for _, c := range []string{"a", "b", "c"} {
			release(acquire(t, s, s.request(c, "p")))
		}
		acquire(t, s, s.request("d", "p"))
		acquire(t, s, s.request("e", "p"))
		for i := range 3 {
			if s.fakes[i].closed != 1 {
				t.Errorf("browser %d lingers beside two surfaces", i)
			}
		}
	})
}

// A blank browser for temporary profiles is kept once there was use for one,
// denies everything, and is nobody's before it is somebody's.
func TestBlank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer end(t, s)
		release(acquire(t, s, s.request("c", "p")))
		synctest.Wait()
		if len(s.fakes) != 1 {
			t.Fatal("a blank was started for a host that only keeps profiles")
		}
		r := s.request("c", "p")
		r.Persistent = false
		release(acquire(t, s, r))
		synctest.Wait()
		if len(s.fakes) != 3 || s.gates[2].bound != 0 {
			t.Fatalf("%d browsers", len(s.fakes))
		}
		got := acquire(t, s, r)
		if !got.Reused() || got.Browser() != s.fakes[2] || s.gates[2].bound != 1 {
			t.Errorf("reused %t, gate %+v", got.Reused(), s.gates[2])
		}
		release(got)
		if s.fakes[2].closed != 1 {
			t.Error("a browser that had a page was kept")
		}
	})
}

// The end of a browser kills all that its uid runs. One that lingers shares its uid
// with no other: temporary profiles have one of the pool, and another profile of the
// connection waits for its end.
func TestLingerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(o *fleet.Options) { o.Linger, o.FirstUID, o.LastUID = time.Minute, 207000, 207003 })
		defer end(t, s)
		s.linger = true
		kept := acquire(t, s, s.request("c", "p"))
		own := kept.UID()
		release(kept)
		r := s.request("c", "p")
		r.Persistent = false
		passing := acquire(t, s, r)
		if passing.UID() == own || passing.UID() == 0 || s.fakes[0].closed != 0 {
			t.Errorf("a temporary profile has uid %d beside a browser of uid %d that was closed %d times", passing.UID(),
				own, s.fakes[0].closed)
		}
		release(passing)
		other := acquire(t, s, s.request("c", "q"))
		defer release(other)
		if other.UID() != own || s.fakes[0].closed != 1 {
			t.Errorf("uid %d, closed %d times: the browser of another profile lingers under the uid that is in use",
				other.UID(), s.fakes[0].closed)
		}
	})
}

// What runs under a browser's uid is killed with the browser: two hosts of one
// machine never have a uid in common, not even where both remember the same one.
func TestUIDsOfTwoHosts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root gives uids; hosts of other users have one each")
		return
	}
	sharing := func(o *fleet.Options) { o.FirstUID, o.LastUID = 206000, 206003 }
	s1, s2 := newStage(t, sharing), newStage(t, sharing)
	one := acquire(t, s1, s1.request("a", "p"))
	two := acquire(t, s2, s2.request("a", "p"))
	if one.UID() == two.UID() {
		t.Errorf("both are %d", one.UID())
	}
	remembered := two.UID()
	release(two)
	end(t, s2)
	third := newStage(t, sharing)
	defer end(t, third)
	if got := acquire(t, third, third.request("b", "p")); got.UID() != remembered {
		t.Errorf("uid %d is free, and %d was given", remembered, got.UID())
	} else {
		defer release(got)
	}
	s4 := newStage(t, func(o *fleet.Options) { sharing(o); o.Dir = s2.dir })
	defer end(t, s4)
	again := acquire(t, s4, s4.request("a", "p"))
	if again.UID() == remembered {
		t.Error("a uid that another host took meanwhile is used because it is remembered")
	}
	release(again)
	release(one)
	end(t, s1)
}

// A host that is root gives each connection a uid of its own, keeps it, and
// gives it its profile.
func TestUIDs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root gives uids; the assignment alone is looked at")
	}
	s := newStage(t, func(o *fleet.Options) { o.FirstUID, o.LastUID = 205000, 205002 })
	uid := map[string]int{}
	for _, c := range []string{"a", "b", "a"} {
		got := acquire(t, s, s.request(c, "p"))
		if before, again := uid[c]; again && before != got.UID() {
			t.Errorf("%s: uid %d, then %d", c, before, got.UID())
		}
		uid[c] = got.UID()
		if o := s.started[len(s.started)-1]; o.UID != got.UID() {
			t.Errorf("started as %d", o.UID)
		}
		checkOwner(t, filepath.Join(s.dir, c, "p"), got.UID())
		checkOwner(t, got.Home(), got.UID())
		release(got)
	}
	if uid["a"] == uid["b"] || uid["a"] < 205000 {
		t.Errorf("uids %v", uid)
	}
	end(t, s)
	s2 := newStage(t, func(o *fleet.Options) { o.Dir, o.FirstUID, o.LastUID = s.dir, 205000, 205002 })
	defer end(t, s2)
	got := acquire(t, s2, s2.request("b", "p"))
	if got.UID() != uid["b"] {
		t.Errorf("another host gave uid %d", got.UID())
	}
	release(got)
	release(acquire(t, s2, s2.request("c", "p")))
	if _, err := s2.Acquire(context.Background(), s2.request("d", "p")); code(err) != "surface_start_failed" {
		t.Errorf("a uid beyond the range: %v", err)
	}
	if err := s2.Forget(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	release(acquire(t, s2, s2.request("d", "p")))
	if _, err := fleet.New(fleet.Options{Dir: t.TempDir(), FirstUID: 0xffff_fff, LastUID: 3}); err == nil ||
		!strings.Contains(err.Error(), "uid_range") {
		t.Errorf("a range that ends before it begins: %v", err)
	}
}
