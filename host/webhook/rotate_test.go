package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// verifies is what a receiver with a secret does with a header: one of the
// signatures has to be its own.
func verifies(secret string, s webhook.Sent, header string) bool {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		key, _ = base64.StdEncoding.DecodeString(encoded)
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte(s.ID + "." + strconv.FormatInt(s.At.Unix(), 10) + "."))
	m.Write(s.Body)
	for sig := range strings.SplitSeq(header, " ") {
		if sig == "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)) {
			return true
		}
	}
	return false
}

// signers says which secrets verify the newest delivery of a test.
func signers(t *testing.T, h *webhook.Hooks, r *receiver, id string, secrets ...string) (out []bool) {
	t.Helper()
	if _, err := h.Test(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s := r.sent[len(r.sent)-1]
	for _, secret := range secrets {
		out = append(out, verifies(secret, s, s.Signature))
	}
	if n := strings.Count(s.Signature, "v1,"); n > 5 {
		t.Errorf("%d signatures", n)
	}
	return out
}

func rotate(t *testing.T, h *webhook.Hooks, id, given string) webhook.Rotation {
	t.Helper()
	r, err := h.Rotate(t.Context(), id, given, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// For 24 hours either secret verifies each delivery, also across a restart and a
// second rotation; then the new one alone does.
func TestRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		w := create(t, h, webhook.Definition{Events: []string{"run.*"}, Secret: "the first secret"})
		one := rotate(t, h, w.ID, "")
		if !strings.HasPrefix(one.Secret, "whsec_") || one.PreviousUntil != store.Time(time.Now().Add(24*time.Hour)) {
			t.Errorf("%+v", one)
		}
		check(t, "at once", signers(t, h, r, w.ID, "the first secret", one.Secret), []bool{true, true})

		m.say(m.begin(), "run.started") // the follower has it too
		settle()
		s := r.sent[len(r.sent)-1]
		if !verifies("the first secret", s, s.Signature) || !verifies(one.Secret, s, s.Signature) {
			t.Error(s.Signature)
		}

		closed(t, h)
		h = open(t, options(m, r))
		defer closed(t, h)
		check(t, "after a restart", signers(t, h, r, w.ID, "the first secret", one.Secret), []bool{true, true})
		time.Sleep(23 * time.Hour)
		if two := rotate(t, h, w.ID, "the third secret"); two.Secret != "" {
			t.Error("a secret that was given is shown")
		}
		check(t, "both within a day", signers(t, h, r, w.ID, "the first secret", one.Secret, "the third secret"),
			[]bool{true, true, true})
		time.Sleep(time.Hour)
		check(t, "a day after the first", signers(t, h, r, w.ID, "the first secret", one.Secret, "the third secret"),
			[]bool{false, true, true})
		if got, err := h.Get(t.Context(), w.ID); err != nil || got.PreviousUntil == "" {
			t.Errorf("%+v %v", got, err)
		}
		time.Sleep(23 * time.Hour)
		check(t, "a day after the second", signers(t, h, r, w.ID, "the first secret", one.Secret, "the third secret"),
			[]bool{false, false, true})
		m.say(m.begin(), "run.started")
		settle()
		if s := r.sent[len(r.sent)-1]; strings.Contains(s.Signature, " ") {
			t.Error(s.Signature)
		}
		if got, err := h.Get(t.Context(), w.ID); err != nil || got.PreviousUntil != "" {
			t.Errorf("%+v %v", got, err)
		}
	})
}

// A rotation is whole or none: one that could not be written down, or whose process
// was killed before it was, changes nothing.
func TestRotateCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		w := create(t, h, webhook.Definition{Events: []string{"run.*"}, Secret: "the first secret"})
		m.broken = errors.New("no disk")
		if _, err := h.Rotate(t.Context(), w.ID, "the next secret", nil); !errors.Is(err, m.broken) {
			t.Error(err)
		}
		m.broken = nil
		check(t, "not written down", signers(t, h, r, w.ID, "the first secret", "the next secret"), []bool{true, false})

		before, err := m.Document(t.Context(), store.Webhooks, w.ID)
		if err != nil {
			t.Fatal(err)
		}
		rotate(t, h, w.ID, "the lost secret")
		closed(t, h)
		if err := m.Write(t.Context(), store.Write{Kind: store.Webhooks, ID: w.ID, Data: before.Data}); err != nil {
			t.Fatal(err)
		}
		h = open(t, options(m, r))
		defer closed(t, h)
		check(t, "killed between", signers(t, h, r, w.ID, "the first secret", "the lost secret"), []bool{true, false})
		rotate(t, h, w.ID, "the next secret")
		check(t, "and again", signers(t, h, r, w.ID, "the first secret", "the next secret", "the lost secret"),
			[]bool{true, true, false})
	})
}

func TestRotateRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newMemory(), &receiver{}
		h := open(t, options(m, r))
		defer closed(t, h)
		w := create(t, h, webhook.Definition{Events: []string{"run.*"}})
		var refused *webhook.Refusal
		for _, secret := range []string{"short", strings.Repeat("x", 513), "whsec_!", "\x00rotated\x00{}"} {
			if _, err := h.Rotate(t.Context(), w.ID, secret, nil); !errors.As(err, &refused) {
				t.Error(secret, err)
			}
		}
		if _, err := h.Rotate(t.Context(), "whk_none", "", nil); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
		for range 4 {
			rotate(t, h, w.ID, "")
		}
		if _, err := h.Rotate(t.Context(), w.ID, "", nil); !errors.Is(err, webhook.ErrRotations) {
			t.Error(err)
		}
		time.Sleep(24 * time.Hour)
		rotate(t, h, w.ID, "")
	})
}
