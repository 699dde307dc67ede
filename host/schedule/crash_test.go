package schedule_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/store"
)

// TestCrashAtEveryCommit: Whatever commit the power is cut at, each
// slot starts once and is recorded once, and no attempt is made twice.
func TestCrashAtEveryCommit(t *testing.T) {
	const hours = 4
	total := commitsOf(t, hours)
	if total < 3*hours {
		t.Fatalf("%d commits in %d hours", total, hours)
	}
	for n := 2; n <= total; n++ { // the first makes the schedule
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d, after %t", n, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { crash(t, n, after, hours) })
			})
		}
	}
}

// everySecond fails the first attempts of runs.
func everySecond(q schedule.Start) play {
	if q.Attempt == 1 {
		return play{lasts: time.Minute, result: failed("worker_lost"), asks: "success"}
	}
	return play{lasts: time.Minute}
}

func commitsOf(t *testing.T, hours int) (total int) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = everySecond
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: hourly})
		pass(time.Duration(hours)*time.Hour + 30*time.Minute)
		w.set(func() { total = w.commits })
	})
	return total
}

func crash(t *testing.T, n int, after bool, hours int) {
	w := newWorld(t)
	w.play = everySecond
	s, _ := w.start()
	w.put(s, host.ScheduleDefinition{Cron: hourly})
	w.set(func() {
		if w.cutBefore = n; after {
			w.cutBefore, w.cutAfter = 0, n
		}
	})
	crashed := false
	for range (hours*60 + 30) * 2 {
		pass(30 * time.Second)
		dead := false
		w.set(func() { dead = w.cut != nil })
		if dead && !crashed {
			crashed = true
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			s.Stop(gone) // nothing it does reaches the store
			w.reboot()
			s, _ = w.start()
		}
	}
	defer w.stop(s)
	slots, retried := map[int]int{}, map[store.RunID]bool{}
	for _, b := range w.begun() {
		if b.Attempt == 1 {
			slots[b.At.Hour()]++
		}
		if b.RetryOf != "" && retried[b.RetryOf] {
			t.Errorf("%s was tried again twice", b.RetryOf)
		}
		retried[b.RetryOf] = true
	}
	for h := 1; h <= hours; h++ {
		equal(t, fmt.Sprintf("starts at %d:00", h), slots[h], 1)
	}
	history := w.history(s)
	equal(t, "records", len(history), hours)
	runs := map[string]bool{}
	for _, k := range history {
		if k.Status != "succeeded" || runs[k.RunID] {
			t.Errorf("record of %s: %s", k.RunID, k.Status)
		}
		runs[k.RunID] = true
	}
	if !crashed {
		t.Error("the power was not cut")
	}
}

// TestStopLeavesRuns: A run that is still active when nobody waits any
// longer is recorded by the next start.
func TestStopLeavesRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = func(schedule.Start) play { return play{lasts: time.Hour} }
		s, stop := w.start()
		w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
		pass(time.Hour + time.Minute)
		stop()
		equal(t, "records", len(w.history(s)), 0)
		pass(2 * time.Hour) // it ended while no scheduler was there
		s, stop = w.start()
		defer stop()
		equal(t, "history", w.statuses(s), "succeeded/1")
		equal(t, "callbacks", len(w.done), 1)
	})
}

// TestStoppedRunGoesOn: A run that ended because its host stopped is
// tried again by the next one; its tick is recorded once.
func TestStoppedRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = func(q schedule.Start) play { return play{lasts: time.Second, forever: q.Attempt == 1} }
		s, stop := w.start()
		w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
		pass(time.Hour + time.Minute)
		s.Quiesce()
		w.end(w.begun()[0].Run, failed("controller_restarted"))
		synctest.Wait()
		stop()
		equal(t, "records", len(w.history(s)), 0)
		pass(time.Minute)
		s, stop = w.start()
		defer stop()
		pass(time.Minute)
		equal(t, "history", w.statuses(s), "succeeded/2")
		equal(t, "starts", len(w.begun()), 2)
	})
}

// TestRecordedOnce: A record whose commit seemed to fail is not written
// again.
func TestRecordedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play = func(schedule.Start) play { return play{lasts: time.Minute} }
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
		pass(time.Hour + 30*time.Second)
		w.set(func() { w.cutAfter = w.commits + 1 })
		pass(40 * time.Second)
		w.set(func() { w.cut, w.cutAfter = nil, 0 })
		pass(10 * time.Minute)
		equal(t, "history", w.statuses(s), "succeeded/1")
		equal(t, "active tick", w.get(s).LastSuccessfulAt != nil, true)
	})
}

// TestMissedByLittle: What passed while the host was down was missed, however
// short that was.
func TestMissedByLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, stop := w.start()
		no := false
		w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *", CatchUp: &no})
		pass(time.Hour - 5*time.Second)
		stop()
		pass(10 * time.Second)
		s, stop = w.start()
		defer stop()
		pass(time.Hour)
		equal(t, "runs", len(w.begun()), 0)
		equal(t, "next", w.get(s).NextDueAt.Format(time.DateTime), "2000-01-02 01:00:00")
	})
}

// TestPausedMeanwhile: A schedule that its owner pauses while its gates are
// asked starts nothing.
func TestPausedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, stop := w.start()
		defer stop()
		w.put(s, host.ScheduleDefinition{Cron: "0 1 * * *"})
		w.set(func() {
			w.look = func() {
				w.set(func() { w.look = nil })
				_, _, err := s.Pause(t.Context(), conn)
				w.must(err)
			}
		})
		pass(2 * time.Hour)
		equal(t, "runs", len(w.begun()), 0)
		equal(t, "mode", w.get(s).EffectiveMode, "paused")
	})
}
