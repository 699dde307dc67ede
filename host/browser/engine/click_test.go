package engine_test

import (
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// shop is a page with a button that says in its status what it did.
func shop() *site {
	s := newSite(button("Save"), text("status", "idle"))
	s.on["n0"] = func() { s.nodes[1].Text = "Saved" }
	return s
}

func TestClickProved(t *testing.T) {
	within(t, shop, func(b *bench) {
		from := time.Now()
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, "", "")
		if took := time.Since(from); took != 100*time.Millisecond {
			t.Errorf("took %v beyond the floor of 100ms", took)
		}
		if b.calls["read"] != 3 || b.calls["ready"] != 1 || b.sent != 1 {
			t.Errorf("round trips: %v", b.calls)
		}
		if r.ActionType != engine.SideEffect || r.ActionTypeSource != engine.FromTable {
			t.Errorf("%s from %s", r.ActionType, r.ActionTypeSource)
		}
		if len(b.signals) != 1 || b.signals[0].Verification != "verified" || b.counts["first_pass_verified_total"] != 1 {
			t.Errorf("%+v", b.signals)
		}
	})
}

func TestNothingHappens(t *testing.T) {
	within(t, shop, func(b *bench) {
		delete(b.on, "n0")
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, engine.VerificationFailed, "")
		if b.sent != 1 {
			t.Errorf("dispatched %d times", b.sent)
		}
		if *r.FailureReason != engine.ReasonUnchanged || r.Verification.Result != "inconclusive" || r.Verification.Ambiguous {
			t.Errorf("%+v", r.Verification)
		}
		if got := r.Terminal.Strategies; len(got) == 0 || got[0] != engine.StateRefresh {
			t.Errorf("%v", got)
		}
	})
}

func TestAnotherChangeIsNoProof(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.on["n0"] = func() { b.nodes[1].Text = "Error" }
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, engine.VerificationFailed, "")
		if *r.FailureReason != engine.ReasonChanged {
			t.Errorf("%s", *r.FailureReason)
		}
	})
}

func TestRolledBack(t *testing.T) {
	within(t, shop, func(b *bench) { // An optimistic update that is taken back
		b.on["n0"] = func() {
			b.nodes[1].Text = "Saved"
			b.later(50*time.Millisecond, func() { b.nodes[1].Text = "idle" })
		}
		b.is(b.act(click("Save", says("status", "Saved"))), engine.VerificationFailed, "")
	})
}

func TestOscillation(t *testing.T) {
	within(t, shop, func(b *bench) {
		n := 0
		b.hook = func(name string, _ int) error {
			if name == "read" && b.sent > 0 {
				b.change(func() {
					n++
					b.nodes[1].Text = []string{"Saved", "idle"}[n%2]
				})
			}
			return nil
		}
		from := time.Now()
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, engine.VerificationFailed, "")
		if time.Since(from) < time.Second {
			t.Errorf("failed before the end of the window")
		}
	})
}

func TestLateEffect(t *testing.T) {
	within(t, shop, func(b *bench) { // later than one window: re-verified, not repeated
		b.on["n0"] = func() { b.later(1500*time.Millisecond, func() { b.nodes[1].Text = "Saved" }) }
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, "", "")
		if b.sent != 1 || r.Recovery == nil || r.Recovery.Attempts != 1 || r.Recovery.Strategy != engine.StateRefresh {
			t.Errorf("sent %d, %+v", b.sent, r.Recovery)
		}
	})
}

func TestAlreadyTrue(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.nodes[1].Text = "Saved"
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, engine.VerificationFailed, "already_true_before")
		if b.sent != 0 || *r.FailureReason != engine.ReasonUnchanged {
			t.Errorf("sent %d, reason %s", b.sent, *r.FailureReason)
		}
		again := click("Save", says("status", "Saved"))
		again.AllowPreexist = true
		b.is(b.act(again), "", "")
		if b.sent != 1 {
			t.Errorf("allow_preexisting: sent %d", b.sent)
		}
	})
}

func TestAnyWantsTheMemberThatChanged(t *testing.T) {
	within(t, shop, func(b *bench) { // Under any the satisfied member itself must have become true
		b.on["n0"] = func() { b.nodes[0].Name = "Save" }
		p := &engine.Predicate{Kind: "any", Of: []engine.Predicate{*says("status", "idle"), *says("status", "Saved")}}
		b.is(b.act(click("Save", p)), engine.VerificationFailed, "already_true_before")
	})
}

func TestIdempotentSideEffectIsRepeated(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.on["n0"] = func() {
			if b.sent == 2 {
				b.nodes[1].Text = "Saved"
			}
		}
		r := click("Save", says("status", "Saved"))
		r.Idempotent = ptr(true)
		got := b.act(r)
		b.is(got, "", "")
		if b.sent != 2 || got.Recovery.Strategy != engine.StepBack {
			t.Errorf("sent %d, %+v", b.sent, got.Recovery)
		}
	})
}

func TestDispatchedFourTimesAtMost(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.on["n0"] = func() { b.nodes[1].Text += "." } // so that no two cycles are identical
		r := click("Save", says("status", "Saved"))
		r.Idempotent, r.Deadline = ptr(true), 60*time.Second
		got := b.act(r)
		b.is(got, engine.VerificationFailed, "")
		if b.sent > 4 || got.Recovery.Attempts != 3 {
			t.Errorf("sent %d in %d cycles", b.sent, got.Recovery.Attempts)
		}
	})
}

func TestRecoveryCanBeTurnedOff(t *testing.T) {
	within(t, shop, func(b *bench) {
		delete(b.on, "n0")
		r := click("Save", says("status", "Saved"))
		r.MaxRecovery = 0
		got := b.act(r)
		b.is(got, engine.VerificationFailed, "")
		if len(got.Terminal.Strategies) != 0 || got.Recovery.Attempts != 0 {
			t.Errorf("%+v", got.Terminal)
		}
	})
}

func TestLateRender(t *testing.T) {
	within(t, shop, func(b *bench) {
		save := b.nodes[0]
		b.nodes = b.nodes[1:]
		b.later(1800*time.Millisecond, func() { b.nodes = append(b.nodes, save) })
		b.on["n0"] = func() { b.find("n1").Text = "Saved" }
		b.is(b.act(click("Save", says("status", "Saved"))), "", "")
	})
}

func TestNotThere(t *testing.T) {
	within(t, shop, func(b *bench) {
		r := b.act(click("Buy", nil))
		b.is(r, engine.ElementNotFound, "")
		if b.sent != 0 || r.Transitions[0].State != engine.Failed || r.Trace.Steps[0].Stage != "resolve" {
			t.Errorf("%+v", r.Transitions)
		}
	})
}

func TestAmbiguous(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.add(button("Save"))
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, engine.AmbiguousTarget, "")
		if b.sent != 0 || len(r.Target.Resolution.Alternates) != 2 {
			t.Errorf("sent %d, alternates %+v", b.sent, r.Target.Resolution)
		}
	})
}

func TestReadinessFaults(t *testing.T) {
	for _, fault := range []string{"not_visible", "zero_size", "disabled", "unstable", "obscured"} {
		within(t, shop, func(b *bench) {
			passed := false
			b.ready = func(_ page.Ref, r *page.Readiness) {
				if !passed {
					r.Fault, r.Owner = fault, ""
				}
			}
			b.later(700*time.Millisecond, func() { passed = true })
			b.is(b.act(click("Save", says("status", "Saved"))), "", "")

			b.nodes[1].Text, passed = "idle", false
			r := click("Save", says("status", "Saved"))
			r.Deadline, r.Actionable = 60*time.Second, 2*time.Second
			sent := b.sent
			b.is(b.act(r), engine.ActionRejected, fault)
			if b.sent != sent {
				t.Errorf("%s: dispatched", fault)
			}
		})
	}
}

func TestEndlessAnimation(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.ready = func(_ page.Ref, r *page.Readiness) { r.Fault = "unstable" }
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, "", "")
		if r.Details.(map[string]any)["unstable"] != true || b.calls["ready"] != 10 {
			t.Errorf("details %v after %d checks", r.Details, b.calls["ready"])
		}
	})
}

func TestScrolledOnce(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.nodes[0].InView = false
		b.is(b.act(click("Save", says("status", "Saved"))), "", "")
		if b.calls["scrollto"] != 1 {
			t.Errorf("scrolled %d times", b.calls["scrollto"])
		}
	})
}

func TestWrongNeighbour(t *testing.T) {
	within(t, shop, func(b *bench) { // Another element under the same ref's place
		b.ready = func(_ page.Ref, r *page.Readiness) { r.Node.Name = "Delete" }
		r := click("Save", says("status", "Saved"))
		r.Actionable = time.Second
		got := b.act(r)
		b.is(got, engine.StaleReference, "changed_before_dispatch")
		if b.sent != 0 {
			t.Errorf("clicked on another element")
		}
	})
}

func TestMovingTarget(t *testing.T) {
	within(t, shop, func(b *bench) { // moves between read and hit test, then rests
		moves := 0
		b.ready = func(_ page.Ref, r *page.Readiness) {
			if moves < 3 {
				moves++
				b.nodes[0].Bounds.Y += 30
				r.Node.Bounds = b.nodes[0].Bounds
			}
		}
		b.nodes[1].Bounds.Y = 400
		b.is(b.act(click("Save", says("status", "Saved"))), "", "")
		if moves != 3 || b.sent != 1 {
			t.Errorf("moved %d times, sent %d", moves, b.sent)
		}
	})
}

func TestTurnedAway(t *testing.T) {
	within(t, shop, func(b *bench) { // It moved between the checks and the press
		b.turns = 2
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, "", "")
		if b.sent != 1 || b.calls["turned"] != 2 || r.Recovery != nil || r.Trace.Attempts != 1 {
			t.Errorf("sent %d after %d, %+v, %d attempts", b.sent, b.calls["turned"], r.Recovery, r.Trace.Attempts)
		}
		b.nodes[1].Text, b.turns = "ready", 1000
		r = b.act(click("Save", says("status", "Saved")))
		b.is(r, engine.StaleReference, "changed_before_dispatch")
		if b.sent != 1 || r.Dispatched {
			t.Errorf("sent %d, dispatched %v", b.sent, r.Dispatched)
		}
	})
}

func TestWedgedInput(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.deaf = true
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, engine.ActionRejected, "no_trusted_events")
		if !r.Dispatched || len(r.Terminal.Strategies) != 0 {
			t.Errorf("dispatched %v, %v", r.Dispatched, r.Terminal.Strategies)
		}
	})
}

func TestLowConfidence(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.add(&page.Node{Tag: "button", Classes: []string{"promo"}, Native: true})
		r := request(engine.Click, &engine.Target{Selector: &engine.Selector{Selector: page.Selector{Query: "promo"}}})
		got := b.act(r)
		b.is(got, engine.ActionRejected, "low_confidence")
		if b.sent != 0 {
			t.Error("clicked")
		}
	})
}

func TestPassiveIsNoTarget(t *testing.T) {
	within(t, shop, func(b *bench) {
		r := request(engine.Click, tested("status"))
		r.Actionable = time.Second
		b.is(b.act(r), engine.ActionRejected, "not_executable")
	})
}

func TestDialogIsOpen(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.dialog = &page.Dialog{Type: "alert"}
		b.hook = func(name string, _ int) error {
			if name == "read" {
				return page.ErrDialog
			}
			return nil
		}
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, engine.ActionRejected, "dialog_open")
		if len(r.Terminal.Strategies) != 0 {
			t.Errorf("%v", r.Terminal.Strategies)
		}
	})
}

func TestDialogIsTold(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.on["n0"] = func() {
			if b.policy != page.DialogAccept {
				t.Errorf("policy %v during the action", b.policy)
			}
			b.happened.Dialogs = []page.Dialog{{Type: "confirm", Text: "Really?", Length: 7, Answer: "accepted"}}
			b.nodes[1].Text = "Saved"
		}
		r := click("Save", says("status", "Saved"))
		r.AcceptDialog = true
		got := b.act(r)
		d, _ := got.Details.(map[string]any)["dialog"].(map[string]any)
		if b.policy != page.DialogDismiss || d["type"] != "confirm" || d["message_length"] != 7 ||
			d["answer"] != "accepted" || len(d) != 3 {
			t.Errorf("policy %v, dialog %v", b.policy, d)
		}
	})
}

func TestDeniedAddressFailsTheClick(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.on["n0"] = func() { b.happened.Refused = []error{page.ErrHost} }
		b.is(b.act(click("Save", says("status", "Saved"))), engine.ActionRejected, "host_denied")
	})
}

func TestOwnerInControl(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.owner = true
		r := b.act(click("Save", says("status", "Saved")))
		b.is(r, engine.ActionRejected, "owner_in_control")
		if b.sent != 0 || b.calls["read"] != 0 || r.FingerprintBefore != nil || len(r.Terminal.Strategies) != 0 {
			t.Errorf("%v", b.calls)
		}
	})
}
