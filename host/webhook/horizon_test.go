package webhook_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// What happened while the process was down is delivered, nothing twice, and a
// back-off goes on where it was.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		create(t, h, webhook.Definition{Events: []string{"run.*"}})
		var want []string
		for range 300 { // pages of runs
			id := m.begin()
			m.say(id, "run.started", "run.completed")
			want = append(want, string(id)+" run.started", string(id)+" run.completed")
		}
		half := m.begin()
		m.say(half, "run.started")
		want = append(want, string(half)+" run.started")
		settle()
		got := r.got(t)
		check(t, "deliveries", inOrder(got), inOrder(want))
		closed(t, h)

		m.say(half, "run.completed")
		down := m.begin()
		m.say(down, "run.started", "run.completed")
		time.Sleep(24 * time.Hour)
		r.answers(func(webhook.Sent) int { return http.StatusBadGateway })
		h = open(t, options(m, r))
		settle()
		check(t, "first attempts after a restart", len(r.got(t)), 2)
		closed(t, h)

		r.answers(nil)
		h = open(t, options(m, r))
		defer closed(t, h)
		settle()
		check(t, "attempts before the back-off is over", r.got(t), []string(nil))
		time.Sleep(10 * time.Second)
		settle()
		check(t, "deliveries after a restart", inOrder(r.got(t)), inOrder([]string{
			string(half) + " run.completed", string(down) + " run.started", string(down) + " run.completed",
		}))
	})
}

// Cursors of runs that are over do not pile up, also when there are more runs
// than lanes, and a restart repeats nothing.
func TestHorizon(t *testing.T) {
	for _, lanes := range []int{4096, 8} {
		synctest.Test(t, func(t *testing.T) {
			m, r := newMemory(), &receiver{}
			o := options(m, r).Lanes(lanes)
			h := open(t, o)
			create(t, h, webhook.Definition{Events: []string{"run.completed"}})
			long := m.begin()
			m.say(long, "run.started")
			want := 0
			for range 40 {
				for range 5 {
					m.say(m.begin(), "run.started", "run.completed")
					want++
				}
				time.Sleep(30 * time.Second)
			}
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			check(t, "deliveries", len(r.got(t)), want)
			if n := m.count(t, store.Deliveries); n > 30 {
				t.Errorf("%d cursors are left of %d runs", n, want)
			}
			closed(t, h)
			m.say(long, "run.completed")
			h = open(t, o)
			defer closed(t, h)
			settle()
			check(t, "only a run behind the horizon", r.got(t), []string{string(long) + " run.completed"})
		})
	}
}

// A run that was active when its webhook was made, and ended while nobody
// looked.
func TestActiveBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		id := m.begin()
		m.say(id, "run.started")
		time.Sleep(time.Hour)
		h := open(t, options(m, r))
		create(t, h, webhook.Definition{Events: []string{"run.*"}})
		closed(t, h)
		m.say(id, "run.completed")
		h = open(t, options(m, r))
		defer closed(t, h)
		settle()
		check(t, "deliveries", r.got(t), []string{string(id) + " run.completed"})
	})
}

// A log that was deleted before it was read through is done with.
func TestPruned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		defer closed(t, h)
		create(t, h, webhook.Definition{Events: []string{"run.completed"}})
		id := m.begin()
		m.say(id, "run.started")
		settle()
		m.mu.Lock()
		m.runs[id] = store.Run{ID: id, Status: "failed", StartedAt: m.runs[id].StartedAt, Pruned: true}
		delete(m.events, id)
		m.mu.Unlock()
		time.Sleep(5 * time.Minute)
		m.say(m.begin(), "run.completed")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		check(t, "deliveries", len(r.got(t)), 1)
		for _, d := range m.docs {
			if strings.HasSuffix(d.ID, string(id)) {
				t.Errorf("cursor left: %s", d.Data)
			}
		}
	})
}
