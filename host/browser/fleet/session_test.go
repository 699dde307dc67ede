package fleet_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/browser/fleet"
)

// Who is asked when, and what comes of it.
func TestFlow(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name   string
		probes []any // bool or error of each probe
		ask    error // nil: it ends, with whatever status
		nobody bool
		state  string
		code   string
		did    []string
	}{
		{"live", []any{true}, nil, false, "live", "", []string{"begin", "probe"}},
		{"recovered", []any{false, true}, nil, false, "recovered", "", []string{"begin", "probe", "login", "ask", "again"}},
		{"still not", []any{false, false}, nil, false, "", "session_not_live",
			[]string{"begin", "probe", "login", "ask", "again"}},
		{"nobody", []any{false}, nil, true, "", "session_not_live", []string{"begin", "probe"}},
		{"nobody any more", []any{false}, fleet.ErrNobody, false, "", "session_not_live",
			[]string{"begin", "probe", "login", "ask"}},
		{"the run ends", []any{false}, context.Canceled, false, "", "context canceled",
			[]string{"begin", "probe", "login", "ask"}},
		{"the probe breaks", []any{broken}, nil, false, "", "broken", []string{"begin", "probe"}},
		{"the second probe breaks", []any{false, broken}, nil, false, "", "broken",
			[]string{"begin", "probe", "login", "ask", "again"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var did []string
			phases := map[string]string{fleet.PhaseBegin: "begin", fleet.PhaseProbe: "probe", fleet.PhaseProbeAgain: "again"}
			n := 0
			f := fleet.Flow{
				Probe: func(context.Context) (bool, error) {
					n++
					if err, bad := c.probes[n-1].(error); bad {
						return false, err
					}
					return c.probes[n-1].(bool), nil
				},
				Login: func(context.Context) { did = append(did, "login") },
				Ask: func(context.Context, string, time.Duration) (string, error) {
					did = append(did, "ask")
					return "q1", c.ask
				},
				Mark: func(phase string) { did = append(did, phases[phase]) },
			}
			if c.nobody {
				f.Ask = nil
			}
			got, err := f.Run(t.Context())
			if err == nil && got.State != c.state || code(err) != c.code || !slices.Equal(did, c.did) {
				t.Errorf("%+v %v after %v", got, err, did)
			}
			if got.State == fleet.SessionRecovered && got.InteractionID != "q1" {
				t.Errorf("%+v", got)
			}
		})
	}
	if got, err := (fleet.Flow{}).Run(t.Context()); err != nil || got.State != fleet.SessionNotProbed {
		t.Errorf("without a probe: %+v %v", got, err)
	}
}

// Gaps count, pauses do not, and it trips once.
func TestWatchdog(t *testing.T) {
	const limit = 10 * time.Second
	for _, c := range []struct {
		name string
		do   func(*fleet.Watchdog)
		at   time.Duration // of the trip
		last string
	}{
		{"silence", func(*fleet.Watchdog) {}, limit, "<none>"},
		{"marks", func(w *fleet.Watchdog) {
			for range 100 {
				time.Sleep(limit - time.Millisecond)
				w.Mark("step")
			}
		}, 100*(limit-time.Millisecond) + limit, "step"},
		{"a pause", func(w *fleet.Watchdog) {
			time.Sleep(limit - time.Second)
			w.Pause("owner", 0)
			time.Sleep(time.Hour)
			w.Resume("owner")
		}, limit - time.Second + time.Hour + limit, "<none>"},
		{"two pauses", func(w *fleet.Watchdog) {
			w.Pause("owner", 0)
			w.Pause("run", 0)
			w.Resume("owner")
			w.Mark("kept") // no deadline begins within a pause
			time.Sleep(time.Hour)
			w.Resume("run")
		}, time.Hour + limit, "kept"},
		{"a pause with an end", func(w *fleet.Watchdog) { w.Pause("assistance", time.Minute) },
			time.Minute + limit, "<none>"},
		{"a pause that is renewed", func(w *fleet.Watchdog) {
			w.Pause("assistance", time.Minute)
			time.Sleep(30 * time.Second)
			w.Pause("assistance", time.Minute)
		}, 90*time.Second + limit, "<none>"},
		{"a resume too many", func(w *fleet.Watchdog) { w.Resume("nothing") }, limit, "<none>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				type trip struct {
					at, silent time.Duration
					last       string
				}
				began := time.Now()
				trips := make(chan trip, 2)
				w := fleet.NewWatchdog(limit,
					func(silent time.Duration, last string) { trips <- trip{time.Since(began), silent, last} })
				c.do(w)
				if got := <-trips; got != (trip{c.at, limit, c.last}) {
					t.Errorf("tripped %+v, want at %s", got, c.at)
				}
				w.Mark("late")
				time.Sleep(time.Hour)
				w.Stop()
				if len(trips) != 0 {
					t.Error("it tripped twice")
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := fleet.NewWatchdog(limit, func(time.Duration, string) { t.Error("it tripped after its end") })
		w.Pause("a", time.Minute)
		w.Stop()
		w.Mark("late")
		time.Sleep(time.Hour)
	})
}

// The variable is a positive integer or nothing.
func TestWatchdogLimit(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 120 * time.Second, "5000": 5 * time.Second,
		"0": 120 * time.Second, "-1": 120 * time.Second,
		"1.5": 120 * time.Second, "x": 120 * time.Second, "99999999999999999999": 120 * time.Second} {
		if got := fleet.WatchdogLimit(text); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}
