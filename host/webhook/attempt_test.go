package webhook_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

func deliveries(t *testing.T, h *webhook.Hooks, id string) []webhook.Attempt {
	t.Helper()
	all, err := h.Deliveries(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// brief is what a test compares of attempts.
func brief(all ...webhook.Attempt) (out []string) {
	for _, a := range all {
		out = append(out, fmt.Sprint(a.Cause, " ", a.Type, " ", a.Number, " ", a.Status, a.Error))
	}
	return out
}

// Every attempt is written down with what came of it, newest first, and is there
// after a restart; the last error stays when others succeed.
func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		w := create(t, h, webhook.Definition{Events: []string{"run.*"}})
		r.answers(func(webhook.Sent) int { time.Sleep(30 * time.Millisecond); return 503 })
		id := m.begin()
		m.say(id, "run.started")
		settle()
		r.answers(nil)
		time.Sleep(10 * time.Second)
		settle()
		m.say(id, "run.completed")
		settle()
		want := []string{"event run.completed 1 204", "event run.started 2 204", "event run.started 1 503status"}
		check(t, "log", brief(deliveries(t, h, w.ID)...), want)
		first := deliveries(t, h, w.ID)[2]
		if first.RunID != id || first.EventID != "evt_0000000000000000" || *first.Sequence != 0 || first.DurationMS != 30 ||
			first.MessageID == "" || first.At == "" {
			t.Errorf("%+v", first)
		}
		if again := deliveries(t, h, w.ID)[1]; again.MessageID != first.MessageID || again.ID == first.ID {
			t.Errorf("%+v after %+v", again, first)
		}
		closed(t, h)
		h = open(t, options(m, r))
		defer closed(t, h)
		check(t, "log after a restart", brief(deliveries(t, h, w.ID)...), want)
		got, err := h.Get(t.Context(), w.ID)
		if err != nil || got.LastError == nil || got.Failures != 0 {
			t.Fatalf("%+v %v", got, err)
		}
		check(t, "last error", *got.LastError, first)

		for range 60 {
			m.say(m.begin(), "run.completed")
		}
		settle()
		all := deliveries(t, h, w.ID)
		if len(all) != 50 || !slices.IsSortedFunc(all,
			func(a, b webhook.Attempt) int { return strings.Compare(b.ID, a.ID) }) {
			t.Errorf("%d attempts", len(all))
		}
		if err := h.Delete(t.Context(), w.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Deliveries(t.Context(), w.ID); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	})
}

// A test says what came of it at once, is in the log, and counts for nothing.
func TestTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		defer closed(t, h)
		w := create(t, h, webhook.Definition{Events: []string{"run.*"}, Secret: "a secret of mine"})
		a, err := h.Test(t.Context(), w.ID)
		if err != nil {
			t.Fatal(err)
		}
		check(t, "answer", brief(a), []string{"test webhook.test 1 204"})
		sent := r.sent[0]
		if !verifies("a secret of mine", sent, sent.Signature) || sent.ID != a.MessageID || !json.Valid(sent.Body) ||
			!strings.Contains(string(sent.Body), w.ID) {
			t.Errorf("%+v %s", sent, sent.Body)
		}
		for _, status := range []int{500, 410, 302} {
			r.answers(func(webhook.Sent) int { return status })
			if a, err = h.Test(t.Context(), w.ID); err != nil || a.Error != webhook.FailedStatus || a.Status != status {
				t.Errorf("%+v %v", a, err)
			}
		}
		got, err := h.Get(t.Context(), w.ID)
		if err != nil || got.Status != webhook.Active || got.Failures != 0 || got.LastError == nil ||
			got.LastError.ID != a.ID {
			t.Errorf("%+v %v", got, err)
		}
		if n := len(deliveries(t, h, w.ID)); n != 4 {
			t.Errorf("%d attempts", n)
		}
		if _, err := h.Test(t.Context(), "whk_none"); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	})
}

// What is delivered again is the same message; what is not kept any more is not.
func TestRedeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		defer closed(t, h)
		w := create(t, h, webhook.Definition{Events: []string{"run.started"}})
		id := m.begin()
		m.say(id, "lease.renewed", "run.started")
		settle()
		old := deliveries(t, h, w.ID)[0]
		a, err := h.Redeliver(t.Context(), w.ID, old.ID)
		if err != nil {
			t.Fatal(err)
		}
		check(t, "answer", brief(a), []string{"redelivery run.started 1 204"})
		if len(r.sent) != 2 || r.sent[0].ID != r.sent[1].ID || string(r.sent[0].Body) != string(r.sent[1].Body) ||
			a.MessageID != old.MessageID {
			t.Errorf("%+v", r.sent)
		}
		check(t, "log", brief(deliveries(t, h, w.ID)...), []string{"redelivery run.started 1 204", "event run.started 1 204"})
		m.say(id, "run.started")
		settle()
		if n := len(r.sent); n != 3 {
			t.Errorf("%d deliveries after one was repeated", n)
		}
		other := create(t, h, webhook.Definition{Events: []string{"run.failed"}})
		for _, ids := range [][2]string{{w.ID, "del_none"}, {other.ID, old.ID}, {"whk_none", old.ID}} {
			if _, err := h.Redeliver(t.Context(), ids[0], ids[1]); !errors.Is(err, store.ErrNotFound) {
				t.Error(ids, err)
			}
		}
		delete(m.events, id) // its log is deleted
		if _, err := h.Redeliver(t.Context(), w.ID, old.ID); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
		test, err := h.Test(t.Context(), w.ID)
		if err != nil {
			t.Fatal(err)
		}
		if a, err = h.Redeliver(t.Context(), w.ID, test.ID); err != nil || a.Cause != webhook.ForTest {
			t.Errorf("%+v %v", a, err)
		}
	})
}

// Nothing but a class is told of a failure, and a private address looks like a name
// that does not exist: when a webhook is made, when it is tested, in its log.
func TestClasses(t *testing.T) {
	const canary = "10.20.30.40"
	failures := map[string]error{
		webhook.FailedConnect: &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.ParseIP(canary), Port: 80},
			Err: errors.New("connection refused " + canary)},
		webhook.FailedTimeout: fmt.Errorf("read %s: %w", canary, context.DeadlineExceeded),
		webhook.FailedTLS:     &tls.CertificateVerificationError{Err: errors.New(canary)},
		webhook.FailedAnswer:  errors.New("malformed HTTP response " + canary),
	}
	for want, failure := range failures {
		m := newMemory()
		o := options(m, &receiver{}).Post(func(context.Context, webhook.Sent) (int, error) { return 0, failure })
		h := open(t, o)
		w := createNow(t, h, target)
		a, err := h.Test(t.Context(), w.ID)
		if err != nil || a.Error != want || a.Status != 0 {
			t.Errorf("%s: %+v %v", want, a, err)
		}
		quiet(t, h, w.ID, canary)
		closed(t, h)
	}

	var told []string
	for _, addresses := range [][]string{{canary}, nil, {"127.0.0.1"}, {"169.254.169.254"}, {"93.184.216.34", canary}} {
		m, known := newMemory(), names{"hooks.example": {"93.184.216.34"}}
		h := open(t, webhook.Options{Store: m, Secrets: m.secrets, Forbidden: forbidden, Resolver: known})
		w := createNow(t, h, target)
		known["hooks.example"] = addresses
		a, err := h.Test(t.Context(), w.ID)
		if err != nil || a.Error != webhook.FailedAddress {
			t.Errorf("%v: %+v %v", addresses, a, err)
		}
		again, err := h.Redeliver(t.Context(), w.ID, a.ID)
		if err != nil || again.Error != webhook.FailedAddress {
			t.Errorf("%v: %+v %v", addresses, again, err)
		}
		quiet(t, h, w.ID, canary)
		_, _, err = h.Create(t.Context(), "owner", webhook.Definition{URL: target, Events: []string{"run.*"}}, nil)
		told = append(told, fmt.Sprint(err))
		closed(t, h)
	}
	if len(slices.Compact(told)) != 1 || strings.Contains(told[0], canary) {
		t.Errorf("what is told of a new webhook: %q", told)
	}
}

// createNow is create outside of a bubble.
func createNow(t *testing.T, h *webhook.Hooks, url string) webhook.Webhook {
	t.Helper()
	w, _, err := h.Create(t.Context(), "owner", webhook.Definition{URL: url, Events: []string{"run.*"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// quiet checks that nothing that is shown of a webhook has a text.
func quiet(t *testing.T, h *webhook.Hooks, id, text string) {
	t.Helper()
	w, err := h.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal([]any{w, deliveries(t, h, id)})
	if err != nil || strings.Contains(string(b), text) {
		t.Errorf("%s %v", b, err)
	}
}

// A body that a server answers with is in nothing that is kept.
func TestAnswerBody(t *testing.T) {
	const canary = "the-private-page"
	port, conf, arrivals := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Canary", canary)
		w.WriteHeader(404)
		_, _ = w.Write([]byte(canary))
	})
	m := newMemory()
	h := open(t, here(m, conf))
	defer closed(t, h)
	w := createNow(t, h, "https://example.com"+port)
	a, err := h.Test(t.Context(), w.ID)
	if err != nil || a.Status != 404 || a.Error != webhook.FailedStatus {
		t.Errorf("%+v %v", a, err)
	}
	<-arrivals
	quiet(t, h, w.ID, canary)
	if d, err := m.Document(t.Context(), store.Webhooks, w.ID); err != nil || strings.Contains(string(d.Data), canary) {
		t.Errorf("%s %v", d.Data, err)
	}
}
