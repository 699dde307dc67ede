package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/store"
)

// The bubble of synctest begins on 2000-01-01 at midnight UTC.

// TestInterval: Never run: at once; then from start to start, also from one
// by hand.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{IntervalSeconds: int64p(600)})
		equal(t, "runs at once", len(w.begun()), 1)
		pass(10 * time.Minute)
		equal(t, "runs after an interval", len(w.begun()), 2)
		pass(4 * time.Minute)
		w.manual(play{lasts: time.Second})
		pass(9 * time.Minute) // 23 min: the interval of the manual run ends at 24
		equal(t, "runs nine minutes after a manual one", len(w.begun()), 2)
		pass(time.Minute)
		equal(t, "runs an interval after a manual one", len(w.begun()), 3)
		got := w.get(s)
		equal(t, "next", got.NextDueAt.Sub(w.begun()[2].At), 10*time.Minute)
		equal(t, "trigger", w.begun()[2].Trigger, "scheduled")
		pass(2 * time.Second)
		equal(t, "history", w.statuses(s), "succeeded/1 succeeded/1 succeeded/1")
	})
}

// TestCronAndJitter: The jitter is drawn once per due time, and lasts.
func TestCronAndJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, stop := w.start()
		first := *w.put(s, host.ScheduleDefinition{Cron: "0 6 * * *", Timezone: "Europe/Berlin",
			JitterSeconds: int64p(3600)}).NextDueAt
		slot := time.Date(2000, 1, 1, 5, 0, 0, 0, time.UTC)
		if first.Before(slot) || first.After(slot.Add(time.Hour)) {
			t.Fatalf("due at %s, want within the hour from %s", first, slot)
		}
		stop()
		s, stop = w.start()
		defer stop()
		equal(t, "due time after a restart", *w.get(s).NextDueAt, first)
		pass(time.Until(first) - time.Millisecond)
		equal(t, "runs before", len(w.begun()), 0)
		pass(time.Millisecond)
		equal(t, "runs", len(w.begun()), 1)
		next := w.get(s).NextDueAt
		if next.Before(slot.Add(24*time.Hour)) || next.After(slot.Add(25*time.Hour)) {
			t.Fatalf("next at %s", next)
		}
	})
}

// TestCatchUp: What passed while nobody was there is one run, or none.
func TestCatchUp(t *testing.T) {
	for _, catchUp := range []bool{true, false} {
		t.Run(fmt.Sprint(catchUp), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s, stop := w.start()
				w.put(s, host.ScheduleDefinition{Cron: "0 * * * *", CatchUp: &catchUp})
				stop()
				pass(5*time.Hour + 20*time.Minute)
				s, stop = w.start()
				defer stop()
				pass(time.Minute)
				want := 0
				if catchUp {
					want = 1
				}
				equal(t, "runs made up for", len(w.begun()), want)
				equal(t, "next", w.get(s).NextDueAt.Format(time.TimeOnly), "06:00:00")
				pass(time.Hour)
				equal(t, "runs", len(w.begun()), want+1)
				for i, h := range w.history(s) { // newest first
					equal(t, "catch_up of the record", h.CatchUp, i == 1)
				}
			})
		})
	}
}

// TestPause: What passes while it is paused is not made up for.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: "0 * * * *"})
		got, changed, err := s.Pause(t.Context(), conn)
		w.must(err)
		equal(t, "paused", fmt.Sprint(got.EffectiveMode, got.NextDueAt, changed), "paused<nil> true")
		_, changed, err = s.Pause(t.Context(), conn)
		w.must(err)
		equal(t, "paused twice", changed, false)
		pass(150 * time.Minute)
		got, changed, err = s.Resume(t.Context(), conn)
		w.must(err)
		equal(t, "resumed", fmt.Sprint(got.EffectiveMode, got.NextDueAt.Format(time.TimeOnly), changed),
			"automatic03:00:00true")
		_, changed, err = s.Resume(t.Context(), conn)
		w.must(err)
		equal(t, "resumed twice", changed, false)
		equal(t, "runs", len(w.begun()), 0)
		pass(30 * time.Minute)
		equal(t, "runs", len(w.begun()), 1)
	})
}

// TestResumeInterval: Not before the last start and the interval.
func TestResumeInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{IntervalSeconds: int64p(3600)})
		pass(10 * time.Minute)
		_, _, err := s.Pause(t.Context(), conn)
		w.must(err)
		got, _, err := s.Resume(t.Context(), conn)
		w.must(err)
		equal(t, "due", got.NextDueAt.Format(time.TimeOnly), "01:00:00")
		_, _, err = s.Pause(t.Context(), conn)
		w.must(err)
		pass(3 * time.Hour)
		_, _, err = s.Resume(t.Context(), conn)
		w.must(err)
		synctest.Wait()
		equal(t, "runs at once", len(w.begun()), 2)
	})
}

// TestOverlap: a due time that finds a run active is skipped and counted.
func TestOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = func(schedule.Start) play { return play{lasts: 150 * time.Minute} }
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: "0 * * * *"})
		pass(3*time.Hour + 10*time.Minute) // 01:00 starts, 02:00 and 03:00 find it there
		got := w.get(s)
		equal(t, "skipped, active", fmt.Sprint(got.TicksSkippedOverlap, got.ActiveRunID), "2run_000000001")
		equal(t, "records", len(w.history(s)), 0)
		pass(30 * time.Minute)
		equal(t, "records", w.statuses(s), "succeeded/1")
		pass(time.Hour)
		equal(t, "runs", len(w.begun()), 2)
	})
}

// TestClock: A clock that goes ahead makes up once, one that goes
// back repeats nothing, and one that was wrong for long is not believed.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: "0 * * * *"})
		pass(30 * time.Minute)
		w.set(func() { w.ahead = 5 * time.Hour }) // 05:30
		pass(time.Minute)
		equal(t, "runs after a jump ahead", len(w.begun()), 1)
		equal(t, "catch up", w.begun()[0].CatchUp, true)
		pass(30 * time.Minute) // 06:01
		equal(t, "runs", len(w.begun()), 2)
		w.set(func() { w.ahead = 3 * time.Hour }) // 04:01
		pass(2*time.Hour + 30*time.Minute)        // 06:31
		equal(t, "runs after a jump back", len(w.begun()), 2)
		pass(time.Hour) // 07:31
		equal(t, "runs after the jump back is over", len(w.begun()), 3)

		w.set(func() { w.ahead = 4 * 365 * 24 * time.Hour })
		pass(2 * time.Hour)
		n := len(w.begun())
		w.set(func() { w.ahead = 3 * time.Hour })
		pass(2 * time.Hour)
		if got := len(w.begun()); got < n+1 || got > n+2 {
			t.Errorf("%d runs in two hours after a clock was right again", got-n)
		}
	})
}

// TestRestartOfStarted: a tick that an earlier host left open is followed on.
func TestRestartOfStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, stop := w.start()
		w.must(s.Start(t.Context()))
		equal(t, "running", s.Running(), true)
		w.put(s, host.ScheduleDefinition{IntervalSeconds: int64p(60)})
		pass(30 * time.Second)
		equal(t, "runs", len(w.begun()), 1)
		stop()
		equal(t, "running", s.Running(), false)
		w.must(s.Start(t.Context()))
		pass(time.Hour)
		equal(t, "runs of a stopped one", len(w.begun()), 1)
	})
}

// TestRetries: a failed run is tried again, and recorded once.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = func(q schedule.Start) play {
			if q.Attempt < 3 {
				return play{lasts: time.Second, result: failed("worker_lost")}
			}
			return play{lasts: time.Second}
		}
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
		pass(2 * time.Hour)
		got := w.begun()
		equal(t, "runs", len(got), 3)
		for i, want := range []string{"scheduled 1  0s", "retry 2 run_000000001 2s", "retry 3 run_000000002 5s"} {
			equal(t, "attempt", fmt.Sprintf("%s %d %s %s", got[i].Trigger, got[i].Attempt, got[i].RetryOf,
				got[i].At.Sub(got[0].At)), want)
		}
		equal(t, "history", w.statuses(s), "succeeded/3")
		equal(t, "callbacks", len(w.done), 1)
		equal(t, "trigger", w.history(s)[0].TriggerKind, "retry")
	})
}

// TestRetriesEnd: max_retries, and what one more does not help.
func TestRetriesEnd(t *testing.T) {
	for reason, want := range map[string]int{"worker_lost": 5, "run_timed_out": 1, "owner_cancelled": 1} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.play = func(schedule.Start) play { return play{lasts: time.Second, result: failed(reason)} }
				s, stop := w.start()
				defer stop()
				w.put(s, host.ScheduleDefinition{Cron: "0 1 1 1 *", MaxRetries: int64p(4)})
				pass(90 * time.Minute)
				equal(t, "runs", len(w.begun()), want)
				equal(t, "records", len(w.history(s)), 1)
				equal(t, "attempt", w.history(s)[0].Attempt, want)
			})
		})
	}
}

// TestRetryWaitEnds: A stop, a pause and a deletion end the wait, and
// the last failure is what is recorded.
func TestRetryWaitEnds(t *testing.T) {
	ends := map[string]func(*world, *schedule.Scheduler){
		"pause":  func(w *world, s *schedule.Scheduler) { _, _, err := s.Pause(w.t.Context(), conn); w.must(err) },
		"delete": func(w *world, s *schedule.Scheduler) { w.must(s.Delete(w.t.Context(), conn)) },
		"stop":   func(w *world, s *schedule.Scheduler) { w.stop(s) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.play = func(schedule.Start) play { return play{lasts: time.Second, result: failed("worker_lost")} }
				s, stop := w.start()
				defer stop()
				w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
				pass(time.Hour + 1500*time.Millisecond)
				end(w, s)
				pass(10 * time.Minute)
				equal(t, "runs", len(w.begun()), 1)
				equal(t, "history", w.statuses(s), "failed/1")
			})
		})
	}
}

// TestDeleteKeepsHistory: An active run goes on and is recorded.
func TestDeleteKeepsHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = func(schedule.Start) play { return play{lasts: time.Hour} }
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{IntervalSeconds: int64p(7200)})
		pass(time.Minute)
		w.must(s.Delete(t.Context(), conn))
		if _, err := s.Schedule(t.Context(), conn); code(err) != schedule.CodeNotFound {
			t.Errorf("deleted: %v", err)
		}
		if err := s.Delete(t.Context(), conn); code(err) != schedule.CodeNotFound {
			t.Errorf("deleted twice: %v", err)
		}
		w.put(s, host.ScheduleDefinition{Cron: "0 0 1 1 *"}) // another in its place
		pass(4 * time.Hour)
		equal(t, "history", w.statuses(s), "succeeded/1")
		equal(t, "runs", len(w.begun()), 1)
	})
}

// TestPoisoned: One schedule that makes its evaluation panic disables
// itself and says so; the others go on.
func TestPoisoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.conns["other"] = schedule.Connection{}
		w.look = func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.runs) == 0 && w.clock().Hour() == 1 {
				panic("poison")
			}
		}
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
		_, _, err := s.Put(t.Context(), "other", host.ScheduleDefinition{Cron: "0 2 * * *"}, nil)
		w.must(err)
		pass(3 * time.Hour)
		got := w.get(s)
		equal(t, "status", got.EffectiveMode+" "+got.IneligibilityReason+" "+got.LastErrorCode,
			"paused schedule_poisoned schedule_poisoned")
		equal(t, "history", w.statuses(s), "failed/0")
		equal(t, "runs of the other", len(w.begun()), 1)
		_, changed, err := s.Resume(t.Context(), conn)
		w.must(err)
		equal(t, "resumed", changed, true)
		pass(24 * time.Hour)
		equal(t, "runs", len(w.begun()), 3)
	})
}

// TestUnreadable: A stored schedule that is none is said, not run, and
// replaced like any other.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.must(w.Write(t.Context(),
			store.Write{Kind: store.Schedules, ID: string(conn), Data: json.RawMessage(`{"definition":7}`)}))
		s, stop := w.start()
		defer stop()
		equal(t, "history", w.statuses(s), "failed/0")
		equal(t, "reason", w.get(s).IneligibilityReason, "schedule_poisoned")
		if _, _, err := s.Resume(t.Context(), conn); code(err) != schedule.CodeIneligible {
			t.Errorf("resumed: %v", err)
		}
		equal(t, "mode", w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"}).EffectiveMode, "automatic")
		pass(2 * time.Hour)
		equal(t, "history", w.statuses(s), "failed/0 succeeded/1")
	})
}

// TestStoreFault: a due run is put off while the store fails, and not lost.
func TestStoreFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = func(schedule.Start) play { return play{lasts: 5 * time.Minute} }
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
		broken := errors.New("disk is gone")
		w.set(func() { w.fail = func([]store.Write) error { return broken } })
		pass(65 * time.Minute)
		equal(t, "runs", len(w.begun()), 0)
		w.set(func() { w.fail = nil })
		pass(time.Minute)
		equal(t, "runs", len(w.begun()), 1)
		w.set(func() { w.fail = func([]store.Write) error { return broken } })
		pass(10 * time.Minute)
		equal(t, "records", len(w.history(s)), 0)
		w.set(func() { w.fail = nil })
		pass(time.Minute)
		equal(t, "records", w.statuses(s), "succeeded/1")
	})
}

// TestPut: what may be saved, and what is refused.
func TestPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.scheduler() // operations need no running scheduler
		_, created, err := s.Put(t.Context(), conn, host.ScheduleDefinition{Cron: " 0 6  * * * "}, new(uint64))
		w.must(err)
		equal(t, "created", created, true)
		one, three := uint64(1), uint64(3)
		got, created, err := s.Put(t.Context(), conn,
			host.ScheduleDefinition{Cron: "0 7 * * *", Timezone: "Asia/Tokyo", MaxRetries: int64p(0)}, &one)
		w.must(err)
		equal(t, "replaced", fmt.Sprint(created, got.Revision, got.Cron, got.Timezone, got.MaxRetries, got.CatchUp),
			"false 20 7 * * *Asia/Tokyo0 true")
		if _, _, err := s.Put(t.Context(), conn, host.ScheduleDefinition{Cron: "0 8 * * *"},
			&three); code(err) != schedule.CodeRevision {
			t.Errorf("wrong revision: %v", err)
		}
		if _, _, err := s.Put(t.Context(), "nobody", host.ScheduleDefinition{Cron: "0 8 * * *"}, nil); !errors.Is(err,
			store.ErrNotFound) {
			t.Errorf("no connection: %v", err)
		}
		for field, q := range map[string]host.ScheduleDefinition{
			"cron":              {},
			"intervalSeconds":   {Cron: "0 0 * * *", IntervalSeconds: int64p(60)},
			"intervalSeconds ":  {IntervalSeconds: int64p(0)},
			"intervalSeconds  ": {IntervalSeconds: int64p(9)},
			"cron ":             {Cron: "0 0 30 2 *"},
			"cron  ":            {Cron: "TZ=UTC 0 0 * * *"},
			"timezone":          {Cron: "0 0 * * *", Timezone: "Mars"},
			"timezone ":         {IntervalSeconds: int64p(60), Timezone: "UTC"},
			"jitterSeconds":     {Cron: "0 0 * * *", JitterSeconds: int64p(-1)},
			"maxRetries":        {Cron: "0 0 * * *", MaxRetries: int64p(11)},
		} {
			_, _, err := s.Put(t.Context(), conn, q, nil)
			var e *host.Refusal
			if !errors.As(err, &e) || e.Code != schedule.CodeInvalid || e.Details["field"] != strings.TrimSpace(field) ||
				!strings.HasSuffix(e.Message, ".") {
				t.Errorf("%s: %v", field, err)
			}
		}
		w.connection(func(c *schedule.Connection) { c.Policy = schedule.ReadPolicy([]byte(`{"background_safe":false}`)) })
		var e *host.Refusal
		if _, _, err := s.Put(t.Context(), conn, host.ScheduleDefinition{Cron: "0 8 * * *"}, nil); !errors.As(err, &e) ||
			e.Code != schedule.CodeIneligible || e.Details["reason"] != "manual_only" {
			t.Errorf("manual only: %v", err)
		}
		w.connection(func(c *schedule.Connection) {
			c.Policy, c.Grant = schedule.Policy{}, &store.Grant{AccessMode: "single_use", Status: "active"}
		})
		_, _, put := s.Put(t.Context(), conn, host.ScheduleDefinition{Cron: "0 8 * * *"}, nil)
		_, _, resumed := s.Resume(t.Context(), conn)
		for act, err := range map[string]error{"put": put, "resume": resumed} {
			if !errors.As(err, &e) || e.Code != schedule.CodeIneligible || e.Details["reason"] != "single_use_grant" {
				t.Errorf("%s with a grant for one run: %v", act, err)
			}
		}
		w.connection(func(c *schedule.Connection) {
			c.Policy, c.Grant = schedule.ReadPolicy([]byte(`{"background_safe":false}`)), nil
		})
		equal(t, "mode", w.get(s).EffectiveMode, "manual")
		list, err := s.Schedules(t.Context())
		w.must(err)
		equal(t, "schedules", len(list), 1)
	})
}

// slowStarter takes a second for each start, and notes how many it makes at once.
type slowStarter struct {
	*world
	now, most int
}

func (s *slowStarter) StartScheduled(ctx context.Context, q schedule.Start) (store.Run, error) {
	s.set(func() { s.now++; s.most = max(s.most, s.now) })
	defer s.set(func() { s.now-- })
	time.Sleep(time.Second)
	return s.world.StartScheduled(ctx, q)
}

// TestDueAtOnce: of schedules that are due together few are started at a time, and all are.
func TestDueAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const schedules = 100
		w := newWorld(t)
		slow := &slowStarter{world: w}
		s := schedule.New(schedule.Deps{Store: w, Starter: slow, Source: w, Now: w.now})
		w.must(s.Start(t.Context()))
		defer w.stop(s)
		for n := range schedules {
			id := store.ConnectionID(fmt.Sprintf("c%d", n))
			w.set(func() { w.conns[id] = w.conns[conn] })
			_, _, err := s.Put(t.Context(), id, host.ScheduleDefinition{IntervalSeconds: int64p(600)}, nil)
			w.must(err)
		}
		pass(schedules * time.Second / 16)
		pass(2 * time.Second)
		equal(t, "runs", len(w.begun()), schedules)
		equal(t, "starts at once", slow.most, 16)
	})
}
