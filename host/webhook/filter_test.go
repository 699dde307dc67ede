package webhook_test

import (
	"testing"
	"testing/synctest"

	"github.com/sluicehost/sluice/host/webhook"
)

// OwnerNeeded tells of one question once, and not of what wants nothing.
func TestOwnerNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		defer closed(t, h)
		create(t, h, webhook.Definition{Events: []string{webhook.OwnerNeeded}})
		id := m.begin()
		m.say(id, "run.started", "run.assistance_requested none", "interrupt.requested", "run.interaction_required",
			"run.assistance_requested provide_value", "node.suspended", "run.completed")
		settle()
		check(t, "deliveries", r.got(t), []string{string(id) + " run.assistance_requested"})
	})
}

// LeftOut tells of runs that left something out, and not of those that did not.
func TestLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		defer closed(t, h)
		create(t, h, webhook.Definition{Events: []string{webhook.LeftOut}})
		whole, part := m.begin(), m.begin()
		m.say(whole, "run.started", "run.completed complete")
		m.say(part, "run.started", "run.completed partial")
		settle()
		check(t, "deliveries", r.got(t), []string{string(part) + " run.completed"})
	})
}

// Only runs that carry one of the tags.
func TestTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		defer closed(t, h)
		create(t, h, webhook.Definition{Events: []string{"run.completed"}, Tags: []string{"home", "work"}})
		for _, tags := range [][]string{nil, {"play"}} {
			m.say(m.begin(tags...), "run.completed")
		}
		id := m.begin("play", "work")
		m.say(id, "run.completed")
		settle()
		check(t, "deliveries", r.got(t), []string{string(id) + " run.completed"})
	})
}
