package fleet_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
)

// Each way to lose a surface is noticed at once, counts once, and frees what it held.
func TestLost(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*fake, *gate)
		code string
	}{
		{"the process ends", func(f *fake, _ *gate) { f.kill() }, fleet.CodeUnreachable},
		{"the page crashes", func(f *fake, _ *gate) { f.crash() }, fleet.CodePageStale},
		{"the proxy ends", func(_ *fake, g *gate) { close(g.lost) }, fleet.CodeNotReady},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, func(o *fleet.Options) { o.Max = 1 })
				defer end(t, s)
				got := acquire(t, s, s.request("c", "p"))
				got.Ready()
				began := time.Now()
				c.do(s.fakes[0], s.gates[0])
				<-got.Gone()
				if time.Since(began) != 0 {
					t.Errorf("noticed after %s", time.Since(began))
				}
				got.Release(context.Background())
				synctest.Wait()
				if got.State() != fleet.Lost || got.Fault().Code != c.code || len(s.lost) != 1 || s.lost[0].Code != c.code {
					t.Errorf("state %s, fault %+v, told %+v", got.State(), got.Fault(), s.lost)
				}
				if want := []string{"requested", "starting", "ready", "released"}; !slices.Equal(s.types(), want) {
					t.Errorf("events %v", s.types())
				}
				acquire(t, s, s.request("c", "p")).Release(context.Background())
			})
		})
	}
}

// The state is right although no event was seen.
func TestLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer end(t, s)
		got := acquire(t, s, s.request("c", "p"))
		got.Ready()
		s.fakes[0].set(func(f *fake) { f.fault = page.ErrGone }) // Health says nothing
		if got.State() != fleet.Lost {
			t.Errorf("state %s", got.State())
		}
		got.Release(context.Background())
	})
}

// An end that was asked for is no loss.
func TestClosedIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer end(t, s)
		got := acquire(t, s, s.request("c", "p"))
		s.fakes[0].closing = time.Second
		go got.Release(context.Background())
		synctest.Wait()
		if got.State() != fleet.Closing {
			t.Errorf("state %s", got.State())
		}
		got.Lose(fleet.Probe{Code: fleet.CodePageStale})
		got.Release(context.Background())
		if got.State() != fleet.Closed || len(s.lost) != 0 {
			t.Errorf("state %s, told %+v", got.State(), s.lost)
		}
	})
}

// A page that hangs is noticed within 7 s, at the worst moment.
func TestWatchHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer end(t, s)
		got := acquire(t, s, s.request("c", "p"))
		var told []fleet.Probe
		go got.Watch(t.Context(), 0, func(p fleet.Probe) { told = append(told, p) })
		synctest.Wait()
		if len(told) != 1 || !told[0].OK {
			t.Fatalf("told %+v", told)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(told) != 1 {
			t.Fatalf("nothing changed: %+v", told)
		}
		s.fakes[0].set(func(f *fake) { f.pagePing = page.ErrHung })
		began := time.Now()
		<-got.Gone()
		if took := time.Since(began); took > 7*time.Second || took < 3*time.Second {
			t.Errorf("noticed after %s", took)
		}
		if got.Fault().Code != fleet.CodeTimeout {
			t.Errorf("%+v", got.Fault())
		}
	})
}

// A page that is silent from the start is unavailable, not lost, until it has
// answered once.
func TestWatchUnarmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer end(t, s)
		got := acquire(t, s, s.request("c", "p"))
		f := s.fakes[0]
		f.set(func(f *fake) { f.pagePing = page.ErrHung })
		var told []fleet.Probe
		ctx, stop := context.WithCancel(t.Context())
		go got.Watch(ctx, 0, func(p fleet.Probe) { told = append(told, p) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(told) != 1 || told[0].Code != fleet.CodeTimeout || got.Fault() != nil {
			t.Fatalf("told %+v, fault %+v", told, got.Fault())
		}
		if types := s.types(); types[len(types)-1] != "probe_failed" {
			t.Errorf("events %v", types)
		}
		f.set(func(f *fake) { f.pagePing = nil })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(told) != 2 || !told[1].OK {
			t.Fatalf("told %+v", told)
		}
		f.set(func(f *fake) { f.pagePing = page.ErrHung })
		<-got.Gone() // now it is armed
		stop()
	})
}

// Before a probe has passed, the browser's own silence is a loss.
func TestWatchUnarmedBrowser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer end(t, s)
		got := acquire(t, s, s.request("c", "p"))
		s.fakes[0].set(func(f *fake) { f.ping = page.ErrHung })
		began := time.Now()
		go got.Watch(t.Context(), 0, func(p fleet.Probe) { t.Errorf("told %+v", p) })
		<-got.Gone()
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("noticed after %s", took)
		}
	})
}

// An open dialog is no loss.
func TestWatchDialog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil)
		defer end(t, s)
		got := acquire(t, s, s.request("c", "p"))
		s.fakes[0].set(func(f *fake) { f.pagePing = page.ErrDialog })
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		got.Watch(ctx, 0, func(p fleet.Probe) {
			if !p.OK {
				t.Errorf("told %+v", p)
			}
		})
		if got.Fault() != nil {
			t.Errorf("%+v", got.Fault())
		}
		got.Release(context.Background())
	})
}

// The interval is within its bounds.
func TestInterval(t *testing.T) {
	for give, want := range map[time.Duration]time.Duration{0: 2 * time.Second, time.Nanosecond: 5 * time.Millisecond,
		time.Hour: 10 * time.Second, time.Second: time.Second} {
		if got := fleet.Interval(give); got != want {
			t.Errorf("%s: %s", give, got)
		}
	}
}
