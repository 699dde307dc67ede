package webhook_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// In sequence order per run, each once while nothing fails, and only what is
// asked for.
func TestDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		before := m.begin()
		m.say(before, "run.started")
		time.Sleep(time.Minute)
		h := open(t, options(m, r))
		defer closed(t, h)
		w := create(t, h, webhook.Definition{Events: []string{"run.*", "node.failed"}})
		check(t, "status", w.Status, webhook.Active)
		settle()
		check(t, "what happened before", r.got(t), []string(nil))

		m.say(before, "node.suspended", "run.progress_reported", "node.failed", "run.failed")
		settle()
		b := string(before) + " "
		check(t, "a run that was active already", r.got(t),
			[]string{b + "run.progress_reported", b + "node.failed", b + "run.failed"})

		for range 60 { // more than a page of events
			m.say(before, "lease.renewed")
		}
		id := m.begin()
		m.say(id, "run.started")
		settle()
		m.say(id, "run.completed")
		settle()
		n := string(id) + " "
		check(t, "a new run", r.got(t), []string{n + "run.started", n + "run.completed"})
	})
}

// A store that cannot write makes deliveries repeat after a restart, never lost.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		create(t, h, webhook.Definition{Events: []string{"run.*"}})
		m.broken = store.ErrNoSpace
		id := m.begin()
		m.say(id, "run.started", "run.completed")
		settle()
		both := []string{string(id) + " run.started", string(id) + " run.completed"}
		check(t, "deliveries", r.got(t), both)
		closed(t, h)
		m.broken = nil
		h = open(t, options(m, r))
		defer closed(t, h)
		settle()
		check(t, "deliveries after a restart", r.got(t), both)
	})
}
