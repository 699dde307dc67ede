package webhook_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

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
		if !slices.ContainsFunc(r.sent,
			func(s webhook.Sent) bool { return strings.Contains(string(s.Body), string(other)) }) {
			t.Error("one run's failure held up another run")
		}
		if got, err := h.Get(t.Context(), w.ID); err != nil || got.Status != webhook.Active {
			t.Errorf("webhook %+v, %v", got, err)
		}
		time.Sleep(5 * 24 * time.Hour)
		synctest.Wait()

		r.sent = slices.DeleteFunc(r.sent,
			func(s webhook.Sent) bool { return strings.Contains(string(s.Body), string(other)) })
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
