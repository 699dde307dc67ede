package webhook_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// A secret is shown once, a webhook that was deleted is gone with all of its
// cursors.
func TestLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		defer closed(t, h)
		var with string
		w, secret, err := h.Create(t.Context(), "key:1", webhook.Definition{URL: target, Events: []string{"run.*"}},
			func(_ webhook.Webhook, s string) []store.Write {
				with = s
				return []store.Write{{Kind: store.Replies, ID: "k", Data: json.RawMessage(`{}`)}}
			})
		if err != nil || !strings.HasPrefix(secret, "whsec_") || with != secret || m.count(t, store.Replies) != 1 {
			t.Fatalf("created with %q, %v", secret, err)
		}
		given, secret2, err := h.Create(t.Context(), "key:1",
			webhook.Definition{URL: target, Events: []string{"run.*"}, Secret: "an-owners-secret"}, nil)
		if err != nil || secret2 != "" {
			t.Fatalf("a given secret came back: %q, %v", secret2, err)
		}
		m.say(m.begin(), "run.started")
		settle()
		if len(r.got(t)) != 2 {
			t.Error("not both were told")
		}
		all, err := h.List(t.Context())
		if err != nil || len(all) != 2 {
			t.Fatalf("listed %v, %v", all, err)
		}
		shown, err := json.Marshal(all)
		if err != nil || strings.Contains(string(shown), secret[6:]) || strings.Contains(string(shown), "an-owners-secret") {
			t.Errorf("a read shows a secret: %s, %v", shown, err)
		}
		for _, id := range []string{w.ID, given.ID} {
			if err := h.Delete(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if err := h.Delete(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("deleted twice: %v", err)
			}
			if _, err := h.Get(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("read after delete: %v", err)
			}
		}
		check(t, "documents left", m.count(t, store.Webhooks)+m.count(t, store.Deliveries), 0)
		m.say(m.begin(), "run.started")
		settle()
		check(t, "deliveries of nobody", r.got(t), []string(nil))
	})
}

// There are never more than MaxWebhooks.
func TestTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, options(newMemory(), &receiver{}))
		defer closed(t, h)
		d := webhook.Definition{URL: target, Events: []string{"*"}}
		for range webhook.MaxWebhooks {
			if _, _, err := h.Create(t.Context(), "owner", d, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := h.Create(t.Context(), "owner", d, nil); !errors.Is(err, webhook.ErrTooMany) {
			t.Errorf("one too many: %v", err)
		}
	})
}

// What a definition may not be.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(newMemory(), &receiver{})
		o.Resolver = names{"hooks.example": {"93.184.216.34"}, "inside.example": {"10.0.0.7"},
			"mixed.example": {"93.184.216.34", "127.0.0.1"}, "meta.example": {"169.254.169.254"}}
		h := open(t, o)
		defer closed(t, h)
		long := "https://hooks.example/" + strings.Repeat("x", 3000)
		for _, c := range []struct {
			member string
			d      webhook.Definition
		}{
			{"url", webhook.Definition{}},
			{"url", webhook.Definition{URL: "hooks.example"}},
			{"url", webhook.Definition{URL: "http://hooks.example/"}},
			{"url", webhook.Definition{URL: "http://127.0.0.1/"}},
			{"url", webhook.Definition{URL: "ftp://hooks.example/"}},
			{"url", webhook.Definition{URL: "https://user:pw@hooks.example/"}},
			{"url", webhook.Definition{URL: "https://hooks.example/#x"}},
			{"url", webhook.Definition{URL: "https://hooks.example:0/"}},
			{"url", webhook.Definition{URL: "https://hööks.example/"}},
			{"url", webhook.Definition{URL: long}},
			{"url", webhook.Definition{URL: "https://nowhere.example/"}},
			{"url", webhook.Definition{URL: "https://inside.example/"}},
			{"url", webhook.Definition{URL: "https://mixed.example/"}},
			{"url", webhook.Definition{URL: "https://meta.example/"}},
			{"url", webhook.Definition{URL: "https://127.0.0.1/"}},
			{"url", webhook.Definition{URL: "https://[::1]/"}},
			{"url", webhook.Definition{URL: "https://[::ffff:10.0.0.1]/"}},
			{"url", webhook.Definition{URL: "https://[fe80::1%25eth0]/"}},
			{"url", webhook.Definition{URL: "https://224.0.0.1/"}},
			{"events", webhook.Definition{URL: target, Events: []string{}}},
			{"events", webhook.Definition{URL: target, Events: []string{"run.started", "run.invented"}}},
			{"events", webhook.Definition{URL: target, Events: []string{"records.changed"}}},
			{"events", webhook.Definition{URL: target, Events: []string{"invented.*"}}},
			{"events", webhook.Definition{URL: target, Events: []string{""}}},
			{"events", webhook.Definition{URL: target, Events: make([]string, 65)}},
			{"secret", webhook.Definition{URL: target, Secret: "short"}},
			{"secret", webhook.Definition{URL: target, Secret: "whsec_not base64"}},
			{"secret", webhook.Definition{URL: target, Secret: strings.Repeat("s", 513)}},
			{"tags", webhook.Definition{URL: target, Tags: []string{""}}},
			{"tags", webhook.Definition{URL: target, Tags: make([]string, 33)}},
		} {
			if c.member != "events" {
				c.d.Events = []string{"run.*"}
			}
			_, _, err := h.Create(t.Context(), "owner", c.d, nil)
			var refusal *webhook.Refusal
			if !errors.As(err, &refusal) || refusal.Member != c.member {
				t.Errorf("%+v: %v, want a refusal of %s", c.d, err, c.member)
			}
		}
	})
}
