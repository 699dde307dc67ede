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
	"github.com/sluicehost/sluice/tests/campaign"
)

// one is a host of several that share the schedules. All of them live, and it is always its turn.
type one string

func (o one) Self() string                                                             { return string(o) }
func (one) Alive(context.Context, string) (bool, error)                                { return true, nil }
func (one) Fits(context.Context, store.ConnectionID) (bool, error)                     { return true, nil }
func (one) Turn(context.Context, store.ConnectionID, time.Time) (time.Duration, error) { return 0, nil }
func (one) Changed() (<-chan struct{}, func()) {
	return make(chan struct{}), func() {}
}

// TestTicksOfHosts: two schedulers of one store, at the same instants, start each of a thousand ticks once and record it
// once; in the soak, of ten thousand.
func TestTicksOfHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticks := 1000
		if campaign.Soak() {
			ticks = 10_000
		}
		w := newWorld(t)
		var all []*schedule.Scheduler
		for i := range 2 {
			s := schedule.New(schedule.Deps{Store: w, Starter: w, Source: w, Now: w.now, Hosts: one(fmt.Sprint("boot_", i))})
			w.must(s.Start(t.Context()))
			defer w.stop(s)
			all = append(all, s)
		}
		w.put(all[0], host.ScheduleDefinition{Cron: "* * * * *"})
		pass(time.Duration(ticks)*time.Minute + 30*time.Second)
		seen := map[time.Time]int{}
		for _, b := range w.begun() {
			seen[b.At.Truncate(time.Minute)]++
		}
		for at, n := range seen {
			if n != 1 {
				t.Errorf("%d starts at %s", n, at)
			}
		}
		equal(t, "ticks that started", len(seen), ticks)
	})
}
