package webhook_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// The secret of a webhook is never in the store; one that an earlier host
// left there is moved; one of no webhook is erased, and a webhook without its
// secret waits instead of sending what nobody signed.
func TestSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		w := create(t, h, webhook.Definition{Events: []string{"run.completed"}, Secret: "an owner's own words"})
		closed(t, h)
		inStore := func() bool {
			return slices.ContainsFunc(slices.Collect(maps.Values(m.docs)),
				func(d store.Document) bool { return strings.Contains(string(d.Data), "own words") })
		}
		if inStore() || string(m.secrets[w.ID]) != "an owner's own words" {
			t.Fatalf("kept as %q, in the store: %v", m.secrets[w.ID], inStore())
		}

		k := m.key(store.Webhooks, w.ID)
		d := m.docs[k]
		d.Data = append([]byte(`{"secret":"an owner's own words",`), d.Data[1:]...)
		m.docs[k] = d
		delete(m.secrets, w.ID)
		m.secrets["whk_of_no_webhook"] = []byte("left behind")
		h = open(t, options(m, r))
		m.say(m.begin(), "run.completed")
		settle()
		closed(t, h)
		check(t, "deliveries", len(r.got(t)), 1)
		if inStore() || len(m.secrets) != 1 || string(m.secrets[w.ID]) != "an owner's own words" {
			t.Errorf("kept as %q, in the store: %v", m.secrets, inStore())
		}

		lost := m.secrets[w.ID]
		delete(m.secrets, w.ID)
		h = open(t, options(m, r))
		m.say(m.begin(), "run.completed")
		settle()
		closed(t, h)
		check(t, "unsigned deliveries", len(r.got(t)), 0)
		m.secrets[w.ID] = lost
		h = open(t, options(m, r))
		settle()
		check(t, "late deliveries", len(r.got(t)), 1)
		if err := h.Delete(t.Context(), w.ID); err != nil || len(m.secrets) != 0 {
			t.Errorf("%d secrets are left, %v", len(m.secrets), err)
		}
		closed(t, h)
	})
}
