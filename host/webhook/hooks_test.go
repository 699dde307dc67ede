package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

const target = "https://hooks.example/in"

// names resolve from a table.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, a := range n[strings.TrimSuffix(host, ".")] {
		out = append(out, netip.MustParseAddr(a))
	}
	if len(out) == 0 {
		return nil, errors.New("no such host")
	}
	return out, nil
}

// forbidden stands for the table of the network room.
func forbidden(a netip.Addr) string {
	if a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() {
		return "not a public address"
	}
	return ""
}

// A receiver is the server behind a URL.
type receiver struct {
	mu     sync.Mutex // guards what follows
	sent   []webhook.Sent
	answer func(webhook.Sent) int // nil: 204
}

// answers has what comes from now on answered by f.
func (r *receiver) answers(f func(webhook.Sent) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

func (r *receiver) post(_ context.Context, s webhook.Sent) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, s)
	if r.answer == nil {
		return http.StatusNoContent, nil
	}
	return r.answer(s), nil
}

// got lists RUN/SEQUENCE TYPE of what arrived, and forgets it.
func (r *receiver) got(t *testing.T) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, s := range r.sent {
		var b struct {
			Type string
			Data struct {
				RunID    string
				Sequence int
				Type     string
			}
		}
		if err := json.Unmarshal(s.Body, &b); err != nil {
			t.Fatal(err)
		}
		if b.Type != b.Data.Type {
			t.Errorf("type %s of an event %s", b.Type, b.Data.Type)
		}
		out = append(out, b.Data.RunID+" "+b.Type)
	}
	r.sent = nil
	return out
}

// inOrder sorts by run and leaves the order within each.
func inOrder(got []string) []string {
	slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(a[:strings.Index(a, " ")], b[:strings.Index(b, " ")]) })
	return got
}

func options(m *memory, r *receiver) webhook.Options {
	return webhook.Options{
		Store: m, Secrets: m.secrets, Forbidden: forbidden, Resolver: names{"hooks.example": {"93.184.216.34"}},
	}.Post(r.post)
}

func open(t *testing.T, o webhook.Options) *webhook.Hooks {
	t.Helper()
	h, err := webhook.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func create(t *testing.T, h *webhook.Hooks, d webhook.Definition) webhook.Webhook {
	t.Helper()
	if d.URL == "" {
		d.URL = target
	}
	w, _, err := h.Create(t.Context(), "owner", d, nil)
	if err != nil {
		t.Fatal(err)
	}
	settle()
	return w
}

func closed(t *testing.T, h *webhook.Hooks) {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// settle lets one scan and what follows from it happen.
func settle() {
	time.Sleep(time.Second) // of the bubble
	synctest.Wait()
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

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
		check(t, "a run that was active already", r.got(t), []string{b + "run.progress_reported", b + "node.failed", b + "run.failed"})

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

// The attempts are at the times of the table, each up to a tenth later, under one
// id; then the event is given up and the next one is delivered.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		r.answer = func(s webhook.Sent) int {
			if strings.Contains(string(s.Body), "run.started") {
				return http.StatusFound // a redirect is no success
			}
			return http.StatusOK
		}
		var outcomes []string
		o := options(m, r)
		o.Observed = func(outcome string) { outcomes = append(outcomes, outcome) }
		h := open(t, o)
		defer closed(t, h)
		w := create(t, h, webhook.Definition{Events: []string{"run.started", "run.completed"}})
		m.say(m.begin(), "run.started", "run.completed")
		other := m.begin()
		m.say(other, "run.completed")
		settle()
		if !slices.ContainsFunc(r.sent, func(s webhook.Sent) bool { return strings.Contains(string(s.Body), string(other)) }) {
			t.Error("one run's failure held up another run")
		}
		if got, err := h.Get(t.Context(), w.ID); err != nil || got.Status != webhook.Active {
			t.Errorf("webhook %+v, %v", got, err)
		}
		time.Sleep(5 * 24 * time.Hour)
		synctest.Wait()

		r.sent = slices.DeleteFunc(r.sent, func(s webhook.Sent) bool { return strings.Contains(string(s.Body), string(other)) })
		if len(r.sent) != len(webhook.Delays)+2 {
			t.Fatalf("%d deliveries", len(r.sent))
		}
		for i, d := range webhook.Delays {
			gap := r.sent[i+1].At.Sub(r.sent[i].At)
			if gap < d || gap > d+d/10+time.Second {
				t.Errorf("attempt %d came %v after the last, want %v to a tenth more", i+2, gap, d)
			}
			if r.sent[i+1].ID != r.sent[0].ID {
				t.Error("webhook-id changed between attempts")
			}
		}
		if last := r.sent[len(r.sent)-1]; last.ID == r.sent[0].ID || !strings.Contains(string(last.Body), "run.completed") {
			t.Errorf("after giving up came %s", last.Body)
		}
		check(t, "outcomes", outcomes[len(outcomes)-2:], []string{"dropped", "delivered"})
		if got, err := h.Get(t.Context(), w.ID); err != nil || got.Failures != 0 {
			t.Errorf("a success leaves failures: %+v, %v", got, err)
		}
	})
}

// 410 disables at once, 5 days without a success disable; both are reported, and
// nothing is attempted or stored any more.
func TestDisables(t *testing.T) {
	for _, c := range []struct {
		because string
		status  int
	}{{webhook.BecauseGone, http.StatusGone}, {webhook.BecauseFailing, http.StatusInternalServerError}} {
		t.Run(c.because, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, r := newMemory(), &receiver{}
				r.answer = func(webhook.Sent) int { return c.status }
				o := options(m, r)
				var mu sync.Mutex // guards told
				told := map[string]string{}
				o.Disabled = func(_ context.Context, id, because string) {
					mu.Lock()
					defer mu.Unlock()
					told[id] = because
				}
				h := open(t, o)
				w := create(t, h, webhook.Definition{Events: []string{"run.*"}})
				m.say(m.begin(), "run.started", "run.paused", "run.resumed", "run.completed")
				begun := time.Now()
				settle()
				if c.status != http.StatusGone {
					time.Sleep(5*24*time.Hour - time.Hour)
					synctest.Wait()
					mu.Lock()
					if len(told) > 0 {
						t.Error("disabled before 5 days")
					}
					mu.Unlock()
					time.Sleep(3 * 24 * time.Hour)
				}
				settle()
				check(t, "told", told, map[string]string{w.ID: c.because})
				got, err := h.Get(t.Context(), w.ID)
				if err != nil || got.Status != webhook.Disabled || got.Because != c.because || got.Failures == 0 {
					t.Errorf("webhook %+v, %v", got, err)
				}
				if c.status != http.StatusGone && got.DisabledAt.Sub(begun) < 5*24*time.Hour {
					t.Errorf("disabled after %v", got.DisabledAt.Sub(begun))
				}
				check(t, "cursors left", m.count(t, store.Deliveries), 0)
				r.got(t)
				m.say(m.begin(), "run.started")
				settle()
				closed(t, h)
				h = open(t, o)
				defer closed(t, h)
				settle()
				check(t, "attempts of a disabled webhook", r.got(t), []string(nil))
			})
		})
	}
}

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

// A secret is shown once, a webhook that was deleted is gone with all of its
// cursors.
func TestLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		defer closed(t, h)
		var with string
		w, secret, err := h.Create(t.Context(), "key:1", webhook.Definition{URL: target, Events: []string{"run.*"}}, func(_ webhook.Webhook, s string) []store.Write {
			with = s
			return []store.Write{{Kind: store.Replies, ID: "k", Data: json.RawMessage(`{}`)}}
		})
		if err != nil || !strings.HasPrefix(secret, "whsec_") || with != secret || m.count(t, store.Replies) != 1 {
			t.Fatalf("created with %q, %v", secret, err)
		}
		given, secret2, err := h.Create(t.Context(), "key:1", webhook.Definition{URL: target, Events: []string{"run.*"}, Secret: "an-owners-secret"}, nil)
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
		o.Resolver = names{"hooks.example": {"93.184.216.34"}, "inside.example": {"10.0.0.7"}, "mixed.example": {"93.184.216.34", "127.0.0.1"}, "meta.example": {"169.254.169.254"}}
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

// A success ends the five days.
func TestSuccessCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		fail := func(webhook.Sent) int { return http.StatusTeapot }
		h := open(t, options(m, r))
		defer closed(t, h)
		w := create(t, h, webhook.Definition{Events: []string{"run.completed"}})
		for range 3 {
			r.answers(fail)
			m.say(m.begin(), "run.completed")
			time.Sleep(4 * time.Minute) // two attempts failed
			synctest.Wait()
			r.answers(nil)
			time.Sleep(2 * 24 * time.Hour)
			synctest.Wait()
		}
		r.answers(fail)
		m.say(m.begin(), "run.completed")
		settle()
		if got, err := h.Get(t.Context(), w.ID); err != nil || got.Status != webhook.Active || got.Failures != 1 {
			t.Errorf("webhook %+v, %v", got, err)
		}
	})
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
			return slices.ContainsFunc(slices.Collect(maps.Values(m.docs)), func(d store.Document) bool { return strings.Contains(string(d.Data), "own words") })
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
