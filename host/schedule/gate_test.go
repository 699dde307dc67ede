package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/store"
)

const hourly = "0 * * * *"

// TestGates: Each refuses with its words, is silent while its cause stays
// the same, and speaks again after a run. hours is how many due times pass.
func TestGates(t *testing.T) {
	soon := time.Date(2000, 1, 1, 0, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		conn   schedule.Connection
		says   string
		reason string
		times  int // in four due times
	}{
		{"1 consumed", schedule.Connection{Grant: &store.Grant{AccessMode: "single_use", Status: "consumed"}},
			"single_use grant already consumed", "", 4},
		{"2 revoked", schedule.Connection{Grant: &store.Grant{AccessMode: "continuous", Status: "revoked"}},
			"grant_revoked grant no longer usable", "grant_revoked", 1},
		{"2 expired", schedule.Connection{Grant: &store.Grant{AccessMode: "continuous", Status: "active", ExpiresAt: &soon}},
			"grant_expired grant no longer usable", "grant_expired", 1},
		{"2 before 5", schedule.Connection{Grant: &store.Grant{Status: "?"}, Policy: schedule.Policy{Unsafe: true},
			NotReady: "secret_missing"}, "grant_invalid grant no longer usable", "grant_invalid", 1},
		{"5 policy before 6", schedule.Connection{Policy: schedule.Policy{Unsafe: true}, NotReady: "secret_missing"},
			"automation_policy_blocked: manual_only", "", 1},
		{"6 readiness", schedule.Connection{NotReady: "secret_missing"}, "not_ready: secret_missing", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s, stop := w.start()
				defer stop()
				w.put(s, host.ScheduleDefinition{Cron: hourly})
				w.connection(func(n *schedule.Connection) { *n = c.conn })
				pass(4*time.Hour + time.Minute)
				equal(t, "runs", len(w.begun()), 0)
				h := w.history(s)
				equal(t, "records", len(h), c.times)
				for _, k := range h {
					equal(t, "record", fmt.Sprint(k.Status, k.Attempt, *k.RecordsEmitted, k.Error, "|", k.TerminalReason),
						fmt.Sprint("skipped", 0, 0, c.says, "|", c.reason))
				}
				equal(t, "next", w.get(s).NextDueAt.Format(time.TimeOnly), "05:00:00")
			})
		})
	}
}

// TestSilence: a new cause speaks, and so does an old one after a run.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: hourly})
		for _, code := range []string{"secret_missing", "secret_missing", "setting_missing", "secret_missing",
			"", "secret_missing"} {
			w.connection(func(n *schedule.Connection) { n.NotReady = code })
			pass(time.Hour)
		}
		pass(time.Minute)
		equal(t, "history", w.statuses(s), "skipped/0 skipped/0 skipped/0 succeeded/1 skipped/0")
		equal(t, "mode", w.get(s).AutomationMode, schedule.AskBeforeRun)
		equal(t, "reason", w.get(s).IneligibilityReason, "secret_missing")
	})
}

// TestGrantEnds: A run that a grant ended, one record, silence, and what
// ends it.
func TestGrantEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		grant := &store.Grant{AccessMode: "continuous", Status: "active"}
		w.connection(func(n *schedule.Connection) { n.Grant = grant })
		w.play = func(schedule.Start) play { return play{lasts: time.Second, result: failed("grant_revoked")} }
		s, stop := w.start()
		w.put(s, host.ScheduleDefinition{Cron: hourly})
		pass(4*time.Hour + time.Minute)
		equal(t, "history", w.statuses(s), "failed/1 skipped/0")
		// the grant was usable all the time
		w.set(func() { w.play = func(schedule.Start) play { return play{lasts: time.Second} } })
		pass(2 * time.Hour)
		equal(t, "usable, not restarted", w.statuses(s), "failed/1 skipped/0")
		_, changed, err := s.Resume(t.Context(), conn)
		w.must(err)
		equal(t, "resumed", changed, true)
		pass(time.Hour)
		equal(t, "restarted", w.statuses(s), "failed/1 skipped/0 succeeded/1")

		w.connection(func(n *schedule.Connection) { n.Grant = &store.Grant{AccessMode: "continuous", Status: "revoked"} })
		pass(3 * time.Hour)
		stop()
		s, stop = w.start() // still unusable: one more, then silence
		defer stop()
		pass(3 * time.Hour)
		equal(t, "host start", w.statuses(s), "failed/1 skipped/0 succeeded/1 skipped/0 skipped/0")
		w.connection(func(n *schedule.Connection) { n.Grant = grant })
		w.must(s.Restarted(t.Context(), conn))
		pass(time.Hour)
		equal(t, "approved anew", w.statuses(s), "failed/1 skipped/0 succeeded/1 skipped/0 skipped/0 succeeded/1")
	})
}

// TestGrantRefusesStart: A grant that ran out between gates and start.
func TestGrantRefusesStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = func(schedule.Start) play { return play{refuse: &schedule.Refused{Code: "grant_expired"}} }
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: hourly})
		pass(3*time.Hour + time.Minute)
		equal(t, "history", w.statuses(s), "skipped/0")
		equal(t, "reason", w.history(s)[0].TerminalReason, "grant_expired")
		equal(t, "rows of runs", len(w.runs), 0)
	})
}

// TestRefusedStart: Any other refusal is a run of one event, and is not
// tried again; one that a moment heals is.
func TestRefusedStart(t *testing.T) {
	for code, want := range map[string]int{"quota_exceeded": 1, "host_resources": 3} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.play = func(schedule.Start) play { return play{refuse: &schedule.Refused{Code: code, Message: "No."}} }
				s, stop := w.start()
				defer stop()
				w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
				pass(2 * time.Hour)
				equal(t, "rows of runs", len(w.runs), want)
				h := w.history(s)
				equal(t, "records", len(h), 1)
				equal(t, "record", fmt.Sprint(h[0].Status, h[0].Attempt, h[0].TerminalReason, h[0].RunID),
					fmt.Sprint("failed", want, "launch_failed", w.runs[want-1].ID))
				equal(t, "next", w.get(s).NextDueAt.Format(time.DateTime), "2000-01-02 01:00:00")
			})
		})
	}
}

// TestActiveAtStart: A run that began between gates and start.
func TestActiveAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = func(schedule.Start) play { return play{refuse: &schedule.Refused{Code: "run_already_active"}} }
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: hourly})
		pass(2*time.Hour + time.Minute)
		equal(t, "skipped", w.get(s).TicksSkippedOverlap, 2)
		equal(t, "records", len(w.history(s)), 0)
	})
}

// TestAttention: a question that nobody answered keeps automatic runs from starting.
func TestAttention(t *testing.T) {
	clears := map[string]func(*world, *schedule.Scheduler){
		"dismissed": func(w *world, s *schedule.Scheduler) { w.must(s.DismissAttention(w.t.Context(), conn)) },
		"manual run": func(w *world, s *schedule.Scheduler) {
			w.manual(play{lasts: time.Second})
		},
	}
	for name, clear := range clears {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.play = func(schedule.Start) play {
					return play{lasts: time.Minute, asks: "timeout", result: failed("assistance_timed_out")}
				}
				s, stop := w.start()
				w.put(s, host.ScheduleDefinition{Cron: hourly})
				pass(time.Hour + 45*time.Second)
				equal(t, "marked while it asks", w.get(s).HumanAttentionNeeded, true)
				pass(2 * time.Hour)
				stop()
				s, stop = w.start() // durable
				defer stop()
				equal(t, "mode", w.get(s).AutomationMode, schedule.AskBeforeRun)
				equal(t, "history", w.statuses(s), "failed/1 skipped/0")
				if says := w.history(s)[0].Error; !strings.HasPrefix(says, "needs_human_attention: ") {
					t.Error(says)
				}
				clear(w, s)
				pass(10 * time.Second)
				equal(t, "marked", w.get(s).HumanAttentionNeeded, false)
				w.set(func() { w.play = func(schedule.Start) play { return play{lasts: time.Minute, asks: "success"} } })
				pass(time.Hour + time.Minute)
				equal(t, "marked after an answer", w.get(s).HumanAttentionNeeded, false)
				equal(t, "history", w.statuses(s), "failed/1 skipped/0 succeeded/1")
			})
		})
	}
}

// TestDismissedStays: A question that was dismissed is not asked anew by
// reading the same run again after a crash.
func TestDismissedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = func(schedule.Start) play { return play{lasts: 100 * time.Hour, asks: "open"} }
		s, stop := w.start()
		w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
		pass(52 * time.Hour)
		equal(t, "marked", w.get(s).HumanAttentionNeeded, true)
		w.must(s.DismissAttention(t.Context(), conn))
		stop()
		w.end(w.begun()[0].Run, failed("run_timed_out"))
		s, stop = w.start()
		defer stop()
		pass(time.Minute)
		equal(t, "marked again", w.get(s).HumanAttentionNeeded, false)
		equal(t, "history", w.statuses(s), "failed/1")
	})
}

// TestWedged: Gates that give no answer in time start nothing, also when it
// comes later.
func TestWedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
		wedge := make(chan struct{})
		w.set(func() { w.look = func() { <-wedge } })
		pass(time.Hour + 29*time.Minute)
		equal(t, "records", len(w.history(s)), 0)
		pass(time.Minute)
		w.set(func() { w.look = nil })
		close(wedge)
		pass(time.Hour)
		h := w.history(s)
		equal(t, "records", len(h), 1)
		equal(t, "record", h[0].Status+" "+h[0].FailureReason, "failed scheduler_dispatch_wedged")
		equal(t, "runs", len(w.begun()), 0)
		pass(24 * time.Hour)
		equal(t, "runs the next day", len(w.begun()), 1)
	})
}

// TestBackoff: Hourly failures of one class: three pass, then the
// wait doubles up to a day, and after seven nothing starts.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = func(schedule.Start) play { return play{lasts: time.Second, result: failed("run_timed_out")} }
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: hourly, JitterSeconds: int64p(60)})
		pass(72*time.Hour + 30*time.Minute) // half past: no step below ends within the jitter of a slot
		var at []string
		for _, b := range w.begun() {
			at = append(at, fmt.Sprint(int(b.At.Sub(w.begun()[0].At).Round(time.Hour).Hours())))
		}
		equal(t, "hours of runs", strings.Join(at, " "), "0 1 2 3 5 9 17") // 1, 1, 1·2⁰, 2¹, 2², 2³ h
		got := w.get(s).SchedulerBackoff
		equal(t, "back-off", fmt.Sprint(got.Applied, got.ConsecutiveFailures, got.ReasonClass, got.NextRunAt,
			got.RecommendedHealthState), "true 7terminal:run_timed_out<nil>blocked")
		equal(t, "history", w.statuses(s),
			"failed/1 failed/1 failed/1 failed/1 skipped/0 failed/1 skipped/0 failed/1 skipped/0 failed/1 skipped/0")
		w.manual(play{lasts: time.Second, result: failed("run_timed_out")})
		pass(2 * time.Hour)
		equal(t, "runs after a failed manual one", len(w.begun()), 7)
		w.manual(play{lasts: time.Second})
		w.set(func() { w.play = func(schedule.Start) play { return play{lasts: time.Second} } })
		pass(2 * time.Hour)
		equal(t, "runs after a manual success", len(w.begun()), 9)
		if w.get(s).SchedulerBackoff != nil {
			t.Error("a back-off after a success")
		}
	})
}

// TestResumeUnblocks: resuming ends a back-off.
func TestResumeUnblocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = func(schedule.Start) play { return play{lasts: time.Second, result: failed("run_timed_out")} }
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{IntervalSeconds: int64p(3600)})
		pass(72 * time.Hour)
		equal(t, "reason", w.get(s).IneligibilityReason, schedule.Blocked)
		_, changed, err := s.Resume(t.Context(), conn)
		w.must(err)
		equal(t, "resumed", changed, true)
		pass(time.Hour)
		equal(t, "runs", len(w.begun()), 8)
	})
}

// TestPolicy: what a manifest says of automatic runs.
func TestPolicy(t *testing.T) {
	for raw, want := range map[string]string{
		``:                       "/unattended",
		`{}`:                     "/unattended",
		`[]`:                     "/unattended",
		`{"recommended_mode":7}`: "/unattended",
		`{"recommended_mode":"paused","background_safe":true}`:                   "manual_only/unattended",
		`{"recommended_mode":"automatic","background_safe":false}`:               "manual_only/unattended",
		`{"recommended_mode":"manual"}`:                                          "manual_only/unattended",
		`{"recommended_mode":"manual","background_safe":true}`:                   "/unattended",
		`{"interaction_posture":"otp_likely"}`:                                   "/assisted",
		`{"interaction_posture":"credentials","assisted_after_owner_auth":true}`: "/unattended",
		`{"interaction_posture":"manual_action_likely","background_safe":true}`:  "/assisted",
		`{"interaction_posture":"none","recommended_mode":"automatic"}`:          "/unattended",
	} {
		p := schedule.ReadPolicy([]byte(raw))
		equal(t, raw, p.Refuses()+"/"+p.Automation(), want)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.connection(func(c *schedule.Connection) {
			c.Policy = schedule.ReadPolicy([]byte(`{"minimum_interval_seconds":3601}`))
		})
		s := w.scheduler()
		equal(t, "hourly", w.put(s, host.ScheduleDefinition{Cron: hourly}).MinimumIntervalWarning, true)
		equal(t, "every two hours", w.put(s, host.ScheduleDefinition{Cron: "0 */2 * * *"}).MinimumIntervalWarning, false)
		equal(t, "interval", w.put(s, host.ScheduleDefinition{IntervalSeconds: int64p(3600)}).MinimumIntervalWarning, true)
	})
}
