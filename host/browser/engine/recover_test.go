package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// faults are what can go wrong at every point where the engine waits for the browser.
// Those of sent come after the page got what was sent.
var faults = map[string]error{
	"hang":              errHang,
	"drop":              page.ErrHung,
	"gone":              page.ErrGone,
	"lost":              page.ErrLost,
	"dialog":            page.ErrDialog,
	"unknown":           errors.New("something nobody foresaw"),
	"hang, sent":        sentError{page.ErrHung},
	"gone, sent":        sentError{page.ErrGone},
	"lost, sent":        sentError{page.ErrLost},
	"dialog, sent":      sentError{page.ErrDialog},
	"unknown, sent":     sentError{errors.New("something nobody foresaw")},
	"deadline, sent":    sentError{context.DeadlineExceeded},
	"navigation, sent":  sentError{page.ErrNavigation},
	"certificate, sent": sentError{page.ErrCertificate},
}

// TestNeverTwice puts every fault at every await point of a click that is not
// idempotent, once and for ever, with a page that shows the effect, shows it late, or
// never: what the server counts is never two.
func TestNeverTwice(t *testing.T) {
	points := []string{"read", "ready", "scrollto", "click"}
	for name, fault := range faults {
		for _, point := range points {
			for nth := 1; nth <= 4; nth++ {
				for _, effect := range []time.Duration{0, 700 * time.Millisecond, -1} {
					for _, forever := range []bool{false, true} {
						t.Run(fmt.Sprintf("%s at %s %d, effect %v, for ever %v", name, point, nth, effect, forever), func(t *testing.T) {
							posts := clickUnder(t, func(at string, n int) error {
								if at == point && (n == nth || forever && n > nth) {
									return fault
								}
								return nil
							}, effect)
							if posts > 1 {
								t.Fatalf("the server counted %d posts", posts)
							}
						})
					}
				}
			}
		}
	}
}

// clickUnder clicks once on a button that posts, and on one that is idempotent, and
// returns what the server counted of the first.
func clickUnder(t *testing.T, hook func(string, int) error, effect time.Duration) (posts int) {
	synctest.Test(t, func(t *testing.T) {
		s := shop()
		s.nodes[0].Submits = true
		s.nodes[0].InView = false
		s.on["n0"] = func() {
			posts++
			switch {
			case effect == 0:
				s.nodes[1].Text = "Saved"
			case effect > 0:
				s.later(effect, func() { s.nodes[1].Text = "Saved" })
			}
		}
		s.hook = hook
		b := newBench(t, s, engine.Options{})
		b.engine = engine.New(engine.Options{Browser: s, Identity: b.identity, Broke: func(error) {}})
		r := b.act(click("Save", says("status", "Saved")))
		if posts == 1 && !r.Dispatched {
			t.Error("the page got it, and the result says that it did not")
		}
		if r.Success && posts == 0 {
			t.Error("verified without a post")
		}
		b.engine.Close()
	})
	return posts
}

// TestKilled loses the browser at every await point: the envelope says so, at once,
// and later verbs are refused.
func TestKilled(t *testing.T) {
	for _, point := range []string{"read", "ready", "click"} {
		for nth := 1; nth <= 4; nth++ {
			within(t, shop, func(b *bench) {
				delete(b.on, "n0")
				dead := false
				b.hook = func(at string, n int) error {
					if at == point && n == nth && !dead {
						dead = true
						close(b.lost)
						return page.ErrLost
					}
					return nil
				}
				r := b.act(click("Save", says("status", "Saved")))
				if !dead {
					b.is(r, engine.VerificationFailed, "")
					return
				}
				b.is(r, engine.Unknown, "surface_lost")
				if len(r.Terminal.Strategies) != 0 && point != "read" || b.sent > 0 && !r.Dispatched {
					t.Errorf("%s %d: %v, dispatched %v, sent %d", point, nth, r.Terminal.Strategies, r.Dispatched, b.sent)
				}
				if _, refused := b.engine.Do(context.Background(), click("Save", nil)); refused == nil ||
					refused.Code != "surface_lost" {
					t.Errorf("a later verb: %v", refused)
				}
			})
		}
	}
}

// TestHungPage: a page that answers nothing is a TIMEOUT, within the deadline. It is
// looked at again, and nothing is sent to it any more.
func TestHungPage(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.hook = func(at string, _ int) error {
			if b.sent > 0 || at == "read" && b.calls["read"] > 1 {
				return errHang
			}
			return nil
		}
		r := click("Save", says("status", "Saved"))
		from := time.Now()
		got := b.act(r)
		b.is(got, engine.Timeout, "")
		if *got.FailureReason != engine.ReasonTimeout || time.Since(from) > 10*time.Second || b.sent != 1 ||
			strings.Join(got.Terminal.Strategies, " ") != "state_refresh" {
			t.Errorf("%s after %v, sent %d, %v", *got.FailureReason, time.Since(from), b.sent, got.Terminal.Strategies)
		}
	})
}

// TestSilence: a page that says nothing for all of a window is looked at again, and
// not clicked again.
func TestSilence(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.on["n0"] = func() { b.nodes[1].Text = "Saved" }
		silent := 0
		b.hook = func(at string, _ int) error {
			if b.sent > 0 && silent < 3 {
				silent++
				time.Sleep(400 * time.Millisecond)
				return errHang
			}
			return nil
		}
		got := b.act(click("Save", says("status", "Saved")))
		b.is(got, "", "")
		if got.Recovery == nil || got.Recovery.Strategy != engine.StateRefresh || b.sent != 1 {
			t.Errorf("sent %d, %+v", b.sent, got.Recovery)
		}
	})
}

// TestDeadline cuts whatever runs.
func TestDeadline(t *testing.T) {
	for _, d := range []time.Duration{500 * time.Millisecond, 900 * time.Millisecond,
		1300 * time.Millisecond, 3 * time.Second} {
		within(t, shop, func(b *bench) {
			delete(b.on, "n0")
			r := click("Save", says("status", "Saved"))
			r.Deadline = d
			from := time.Now()
			got := b.act(r)
			if took := time.Since(from); took > d {
				t.Errorf("%v: took %v", d, took)
			}
			if d < time.Second && *got.FailureCode != engine.Timeout {
				t.Errorf("%v: %s", d, *got.FailureCode)
			}
		})
	}
}

// TestPauseCostsNothing: a pause stops the clocks and keeps the page untouched.
func TestPauseCostsNothing(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.on["n0"] = func() { b.later(400*time.Millisecond, func() { b.nodes[1].Text = "Saved" }) }
		b.hook = func(at string, n int) error {
			if at == "ready" {
				b.engine.Pause()
				go func() {
					time.Sleep(time.Hour)
					if b.sent != 0 {
						t.Error("a paused run clicked")
					}
					b.engine.Resume()
				}()
			}
			return nil
		}
		r := click("Save", says("status", "Saved"))
		r.Deadline = 2 * time.Second
		b.is(b.act(r), "", "")
	})
}

func TestBusy(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.hook = func(at string, _ int) error {
			if at == "ready" {
				if _, refused := b.engine.Do(context.Background(), click("Save", nil)); refused == nil ||
					refused.Code != "surface_busy" {
					t.Errorf("a second call: %v", refused)
				}
			}
			return nil
		}
		b.is(b.act(click("Save", says("status", "Saved"))), "", "")
	})
}

func TestHostFault(t *testing.T) {
	within(t, shop, func(b *bench) {
		broke := false
		b.engine = engine.New(engine.Options{Browser: b.site, Identity: b.identity, Broke: func(error) { broke = true }})
		b.hook = func(at string, _ int) error {
			if at == "ready" {
				panic("a bug")
			}
			return nil
		}
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, engine.Unknown, "internal")
		if !broke || b.sent != 0 {
			t.Errorf("logged %v, sent %d", broke, b.sent)
		}
	})
}
