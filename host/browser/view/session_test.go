package view_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/browser/view"
)

// What a view needs, and how it is refused.
func TestMintRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(*room)
		mint   view.Mint
		code   string
	}{
		"mode":            {mint: view.Mint{Mode: "steer"}, code: view.CodeRequest},
		"unknown run":     {mint: view.Mint{Run: "run_2"}, code: view.CodeUnavailable},
		"nothing pending": {func(r *room) { r.run.Answered("i1", view.ReasonEnded) }, view.Mint{}, view.CodeNoPending},
		"answered": {func(r *room) { r.run.Answered("i1", view.ReasonEnded) }, view.Mint{InteractionID: "i1"},
			view.CodeNoPending},
		"another":          {mint: view.Mint{InteractionID: "i0"}, code: view.CodeMismatch},
		"kind":             {func(r *room) { r.run.Asked("i2", "credentials") }, view.Mint{}, view.CodeKind},
		"approval":         {func(r *room) { r.run.Asked("i2", "approval") }, view.Mint{InteractionID: "i2"}, view.CodeKind},
		"stale assistance": {mint: view.Mint{AssistanceID: "a0"}, code: view.CodeNoPending},
		"no surface":       {func(r *room) { r.run.Down(view.ReasonLost) }, view.Mint{}, view.CodeUnavailable},
		"only looking": {func(r *room) { r.run.Down(view.ReasonLost) }, view.Mint{Mode: view.ModeView},
			view.CodeUnavailable},
		"ended": {func(r *room) { r.run.End() }, view.Mint{}, view.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			if tt.before != nil {
				tt.before(r)
			}
			m, err := r.views.Mint(fill(tt.mint))
			var refusal *view.Refusal
			if !errors.As(err, &refusal) || refusal.Code != tt.code || m.Token != "" {
				t.Fatalf("%+v %v, want %s", m, err, tt.code)
			}
			if got := r.happened(); len(got) != 0 {
				t.Errorf("a refusal made %v", got)
			}
		})
	}
	r := newRoom(t)
	r.run.Answered("i1", view.ReasonEnded)
	r.run.Assisted("a1", true)
	r.mint(view.Mint{})                    // of the assistance that is open
	r.mint(view.Mint{AssistanceID: "a1"})  // by its name
	r.mint(view.Mint{Mode: view.ModeView}) // nothing needs to be pending
}

// A token opens one connection, for its owner session and run, within a minute; what it
// opens nothing with says nothing.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		m := r.mint(view.Mint{})
		if len(m.Token) != 43 || !strings.HasPrefix(m.ViewID, "vw_") || m.Replayed || time.Until(m.ExpiresAt) != time.Minute {
			t.Errorf("%+v", m)
		}
		auth := func(token string) object { return object{"type": "auth", "token": token} }
		for name, c := range map[string]*conn{
			"unknown":      r.dial("o1", "run_1", auth(strings.Repeat("x", 43))),
			"empty":        r.dial("o1", "run_1", auth("")),
			"foreign":      r.dial("o2", "run_1", auth(m.Token)),
			"no object":    r.dial("o1", "run_1", "auth"),
			"another type": r.dial("o1", "run_1", object{"type": "mouse", "token": m.Token}),
			"a resume":     r.dial("o1", "run_1", object{"type": "auth", "resume": m.Token}),
		} {
			c.ended(t, view.CloseInvalidToken, view.ReasonInvalidToken)
			if len(c.texts)+len(c.frames) > 0 {
				t.Errorf("%s: something was said", name)
			}
		}
		r.dial("o1", "run_2", auth(m.Token)).ended(t, view.CloseForbidden, view.ReasonForeign)
		r.dial("o1", "run_1", object{"type": "auth", "token": m.Token, "interaction_id": "i9"}).ended(t,
			view.CloseForbidden, view.ReasonForeign)

		c := r.dial("o1", "run_1", auth(m.Token))
		hello := c.heard(t, "hello")
		if hello["mode"] != "control" || hello["host"] != "bank.example" || hello["view_id"] != m.ViewID {
			t.Errorf("%v", hello)
		}
		r.dial("o1", "run_1", auth(m.Token)).ended(t, view.CloseInvalidToken, view.ReasonInvalidToken) // used

		late := r.mint(view.Mint{Owner: "o3"})
		time.Sleep(time.Minute)
		r.dial("o3", "run_1", auth(late.Token)).ended(t, view.CloseExpired, view.ReasonExpired)
		r.dial("o1", "run_1", auth(late.Token)).ended(t, view.CloseInvalidToken, view.ReasonInvalidToken) // and foreign

		silent := newConn()
		go r.views.Connect(t.Context(), "o1", "run_1", silent)
		time.Sleep(11 * time.Second)
		silent.ended(t, view.CloseInvalidToken, view.ReasonInvalidToken)

		// Events name no token.
		r.mu.Lock()
		defer r.mu.Unlock()
		for i, d := range r.data {
			for k, v := range d {
				if s, ok := v.(string); ok && (s == m.Token || s == late.Token || s == hello["resume"]) {
					t.Errorf("%s has a secret in %s", r.events[i], k)
				}
			}
		}
	})
}

// A repeated request gets the same token until it was used; another one
// supersedes.
func TestIdempotency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		first := r.mint(view.Mint{Key: "k1"})
		again := r.mint(view.Mint{Key: "k1"})
		if again.Token != first.Token || again.ViewID != first.ViewID || !again.Replayed {
			t.Errorf("%+v, then %+v", first, again)
		}
		if other := r.mint(view.Mint{Key: "k1", Owner: "o2"}); other.Token == first.Token || other.Replayed {
			t.Error("another owner session got it")
		}
		c := r.dial("o1", "run_1", object{"type": "auth", "token": first.Token})
		c.heard(t, "hello")
		if used := r.mint(view.Mint{Key: "k1"}); used.Token != "" || used.ViewID != first.ViewID || !used.Replayed {
			t.Errorf("after it was used: %+v", used)
		}
		second := r.mint(view.Mint{Key: "k2"})
		c.ended(t, view.CloseInvalidToken, view.ReasonSuperseded)
		if second.ViewID == first.ViewID || second.Replayed {
			t.Errorf("%+v", second)
		}
		third := r.mint(view.Mint{Key: "k1"}) // its view is over: it is no replay
		if third.ViewID == first.ViewID || third.Token == first.Token || third.Token == "" || third.Replayed {
			t.Errorf("%+v", third)
		}
		r.dial("o1", "run_1", object{"type": "auth", "token": second.Token}).ended(t, view.CloseInvalidToken,
			view.ReasonInvalidToken)
		if a, b := r.mint(view.Mint{}), r.mint(view.Mint{}); a.ViewID == b.ViewID {
			t.Error("an empty key is a key")
		}
		time.Sleep(61 * time.Second)
		if old := r.mint(view.Mint{Key: "k1"}); old.Replayed || old.ViewID == third.ViewID {
			t.Errorf("after a minute: %+v", old)
		}
	})
}

// Of many that show one token at one time, one gets in.
func TestRedeemRace(t *testing.T) {
	r := newRoom(t)
	defer r.views.Close()
	for range 20 {
		m := r.mint(view.Mint{})
		var (
			wg  sync.WaitGroup
			mu  sync.Mutex
			got int
		)
		for range 8 {
			wg.Go(func() {
				c := r.dial("o1", "run_1", object{"type": "auth", "token": m.Token})
				select {
				case <-c.texts:
					mu.Lock()
					got++
					mu.Unlock()
				case <-c.closed:
				}
			})
		}
		wg.Wait()
		if got != 1 {
			t.Fatalf("%d connections with one token", got)
		}
	}
}

// A dropped connection comes back with its secret, which works once, within 30 s; a
// second connection closes the first.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		c, hello := r.enter(view.Mint{})
		synctest.Wait()
		resume := func(h object) object { return object{"type": "auth", "resume": h["resume"]} }
		c.Close(1006, "") // the network is gone
		time.Sleep(29 * time.Second)
		second := r.dial("o1", "run_1", resume(hello))
		hello2 := second.heard(t, "hello")
		if hello2["resume"] == hello["resume"] || hello2["view_id"] != hello["view_id"] || hello2["lease"] != "yours" {
			t.Errorf("%v", hello2)
		}
		r.dial("o1", "run_1", resume(hello)).ended(t, view.CloseInvalidToken, view.ReasonInvalidToken)
		third := r.dial("o1", "run_1", resume(hello2))
		hello3 := third.heard(t, "hello")
		second.ended(t, view.CloseDone, view.ReasonReplaced)
		synctest.Wait()
		if _, released := r.surface.leases(); released != 0 {
			t.Error("the lease went with a connection")
		}
		r.dial("o2", "run_1", resume(hello3)).ended(t, view.CloseInvalidToken, view.ReasonInvalidToken)
		third.Close(1006, "")
		time.Sleep(31 * time.Second)
		r.dial("o1", "run_1", resume(hello3)).ended(t, view.CloseExpired, view.ReasonExpired)
		if taken, released := r.surface.leases(); taken != 1 || released != 1 {
			t.Errorf("%d leases taken, %d released", taken, released)
		}
		want := []string{"run.stream_session_requested", "run.stream_session_opened", "run.stream_session_resolved"}
		if d := cmp.Diff(want, r.happened()); d != "" {
			t.Error(d)
		}
	})
}

// Sessions end with what they are about, or when they are revoked.
func TestEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end    func(*room, string)
		code   int
		reason string
	}{
		"answered": {func(r *room, _ string) { r.run.Answered("i1", view.ReasonEnded) }, view.CloseDone, view.ReasonEnded},
		"lost":     {func(r *room, _ string) { r.run.Down(view.ReasonLost) }, view.CloseDone, view.ReasonLost},
		"run over": {func(r *room, _ string) { r.run.End() }, view.CloseDone, view.ReasonEnded},
		"revoked": {func(r *room, id string) {
			if r.views.Revoke("o2", "run_1", id) || r.views.Revoke("o1", "run_2", id) || !r.views.Revoke("o1", "run_1", id) ||
				r.views.Revoke("o1", "run_1", id) {
				r.t.Error("revoke")
			}
		}, view.CloseDone, view.ReasonRevoked},
		"answered while the host stops": {func(r *room, _ string) {
			r.views.Quiesce()
			r.run.Answered("i1", view.ReasonEnded)
		}, view.CloseGoing, view.ReasonStopping},
		"host stops": {func(r *room, _ string) { r.views.Close() }, view.CloseGoing, view.ReasonStopping},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t)
				c, hello := r.enter(view.Mint{})
				unused := r.mint(view.Mint{Owner: "o2"})
				synctest.Wait()
				tt.end(r, hello["view_id"].(string))
				c.ended(t, tt.code, tt.reason)
				synctest.Wait()
				if taken, released := r.surface.leases(); taken != 1 || released != 1 {
					t.Errorf("%d leases taken, %d released", taken, released)
				}
				if name != "revoked" {
					d := r.dial("o2", "run_1", object{"type": "auth", "token": unused.Token})
					<-d.closed
					if len(d.texts) > 0 {
						t.Error("a voided token opened something")
					}
				}
				r.views.Close()
			})
		})
	}
}

// What a dashboard could not reach is recorded in words of ours.
func TestReachFailed(t *testing.T) {
	r := newRoom(t)
	m := r.mint(view.Mint{})
	if r.views.Failed("o2", "run_1", m.ViewID, "x", 0) || r.views.Failed("o1", "run_1", "vw_none", "x", 0) {
		t.Error("recorded for another")
	}
	r.views.Failed("o1", "run_1", m.ViewID, "session_expired", 410)
	r.views.Failed("o1", "run_1", m.ViewID, "<script>", 99999)
	want := []map[string]any{
		{"view_id": m.ViewID, "mode": "control", "interaction_id": "i1"},
		{"view_id": m.ViewID, "reason": "session_expired", "http_status": 410},
		{"view_id": m.ViewID, "reason": "unknown"},
	}
	if d := cmp.Diff(want, r.data); d != "" {
		t.Error(d)
	}
}

// Nobody fills the host with views.
func TestMintLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		defer r.views.Close()
		refused := 0
		for i := range 200 {
			if _, err := r.views.Mint(fill(view.Mint{Owner: strings.Repeat("o", i+1)})); err != nil {
				refused++
			}
		}
		if refused != 200-view.MaxSessions {
			t.Errorf("%d of 200 refused", refused)
		}
		time.Sleep(61 * time.Second)
		r.mint(view.Mint{Owner: "later"})
		for i := range view.MaxViewers {
			r.enter(view.Mint{Owner: strings.Repeat("p", i+1), Mode: view.ModeView})
		}
		m := r.mint(view.Mint{Owner: "one too many", Mode: view.ModeView})
		r.dial("one too many", "run_1", object{"type": "auth", "token": m.Token}).ended(t, view.CloseBusy, view.ReasonCrowded)
	})
}
