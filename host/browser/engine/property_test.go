package engine_test

import (
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// TestDeltaThatHeldAlready: a declared delta that holds before is no proof of a fill,
// a select or a check that did nothing; one that comes about is.
func TestDeltaThatHeldAlready(t *testing.T) {
	idle := says("status", "idle")
	fill := func() *engine.Request {
		r := request(engine.Fill, named("textbox", "Mail"))
		r.Type.Plain, r.Expect = "a@b.test", idle
		return r
	}
	form := func() *site { return newSite(field("Mail"), text("status", "idle")) }
	within(t, form, func(b *bench) {
		got := b.act(fill())
		if b.is(got, "", ""); !got.Dispatched || *b.nodes[0].State.TextValue != "a@b.test" {
			t.Errorf("nothing was typed: %+v", got)
		}
		if got = b.act(fill()); got.Dispatched || !got.Success {
			t.Errorf("both hold, and it was typed again: %+v", got)
		}
	})
	within(t, func() *site {
		s := form()
		s.on["n0"] = func() { s.nodes[0].State.TextValue = ptr("") }
		return s
	}, func(b *bench) { b.is(b.act(fill()), engine.VerificationFailed, "") })
	within(t, func() *site { // a field that makes something else of what is typed
		s := form()
		s.on["n0"] = func() { s.nodes[0].State.TextValue, s.nodes[1].Text = ptr(""), "a@b.test" }
		return s
	}, func(b *bench) {
		r := fill()
		r.Expect = says("status", "a@b.test")
		b.is(b.act(r), "", "")
	})
	within(t, func() *site { return newSite(checkbox(false), text("status", "idle")) }, func(b *bench) {
		r := request(engine.Check, named("checkbox", "Terms"))
		r.Check, r.Expect = true, idle
		if got := b.act(r); got.Success || !got.Dispatched {
			t.Errorf("a box that stays empty is checked: %+v", got)
		}
	})
	within(t, func() *site { return newSite(theme(), text("status", "idle")) }, func(b *bench) {
		r := request(engine.Select, named("combobox", "Theme"))
		r.Select.Label, r.Expect = ptr("Dark"), idle
		if b.is(b.act(r), "", ""); b.nodes[0].State.Selected.ID != "dark" {
			t.Error("nothing was selected")
		}
	})
}

// TestNothingIsSentTwice: what made the page send something is a side effect from then
// on, and what its author calls no repetition is done once.
func TestNothingIsSentTwice(t *testing.T) {
	no, yes := false, true
	for name, c := range map[string]struct {
		sends      bool
		idempotent *bool
		least      int
		most       int
		effect     string
	}{
		"stays in the page":         {false, nil, 2, 4, engine.LocalState},
		"is sent":                   {true, nil, 1, 1, engine.SideEffect},
		"must not be repeated":      {false, &no, 1, 1, engine.LocalState},
		"is sent, and may be twice": {true, &yes, 2, 4, engine.SideEffect},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func() *site {
				s := newSite(checkbox(false), field("Mail"))
				send := func() {
					if c.sends {
						s.happened.Sent++
					}
				}
				s.on["n0"] = send
				s.on["n1"] = func() { s.nodes[1].State.TextValue = ptr(""); send() }
				return s
			}, func(b *bench) {
				for _, r := range []*engine.Request{request(engine.Check, named("checkbox", "Terms")), request(engine.Fill, named("textbox", "Mail"))} {
					b.happened.Sent, b.sent = 0, 0
					r.Check, r.Type.Plain, r.Idempotent, r.Deadline = true, "x", c.idempotent, 60e9
					got := b.act(r)
					if got.Success || b.sent < c.least || b.sent > c.most || got.ActionType != c.effect {
						t.Errorf("%s: sent %d times, %s", r.Verb, b.sent, got.ActionType)
					}
					if got.Verification.Classification.Outcome == "success" {
						t.Errorf("%s: a failure is told as success: %+v", r.Verb, got.Verification.Classification)
					}
				}
			})
		})
	}
}

// TestAdjustThatIsSent: the other ways to a value are not tried once the page told its
// server of the first one.
func TestAdjustThatIsSent(t *testing.T) {
	within(t, func() *site {
		s := newSite(slider(true, 10, 5))
		s.on["n0"] = func() { s.nodes[0].State.Value, s.happened.Sent = ptr(35.0), s.happened.Sent+1 }
		return s
	}, func(b *bench) {
		r := adjust(33)
		r.Deadline = 30e9
		if b.is(b.act(r), engine.ConvergenceFailed, ""); b.sent != 1 {
			t.Errorf("sent %d times", b.sent)
		}
	})
}

// TestFailureThatChangedThePage: whatever a failed action changed is not its success.
func TestFailureThatChangedThePage(t *testing.T) {
	within(t, func() *site {
		s := shop()
		s.on["n0"] = func() { s.nodes[1].Text = "Deleted" }
		return s
	}, func(b *bench) {
		got := b.act(click("Save", says("status", "Saved")))
		if b.is(got, engine.VerificationFailed, ""); got.Verification.Classification.Outcome != "ui_failure" {
			t.Errorf("%+v", got.Verification.Classification)
		}
	})
}

// TestTickOfThreeStates: from neither to off is a step on the way to on, also where the
// page tells its server of each.
func TestTickOfThreeStates(t *testing.T) {
	within(t, func() *site {
		s := newSite(checkbox(false))
		s.nodes[0].State = page.State{Mixed: true}
		s.on["n0"] = func() {
			s.happened.Sent++
			on := s.nodes[0].State.Checked != nil
			s.nodes[0].State = page.State{Checked: &on}
		}
		return s
	}, func(b *bench) {
		if b.is(b.act(tick()), "", ""); b.sent != 2 {
			t.Errorf("clicked %d times", b.sent)
		}
	})
}

// TestComesAndGoes: a delta that holds in every other moment is not proved by two looks
// that happen to see it.
func TestComesAndGoes(t *testing.T) {
	for _, pace := range []time.Duration{90 * time.Millisecond, 110 * time.Millisecond, 130 * time.Millisecond} {
		within(t, func() *site {
			s := shop()
			s.on["n0"] = func() {
				for n := range 200 {
					s.later(time.Duration(n)*pace, func() { s.nodes[1].Text = []string{"idle", "Saved"}[n%2] })
				}
			}
			return s
		}, func(b *bench) { b.is(b.act(click("Save", says("status", "Saved"))), engine.VerificationFailed, "") })
	}
	within(t, func() *site { // one that flickers once and stays
		s := shop()
		s.on["n0"] = func() {
			s.nodes[1].Text = "Saved"
			s.later(50*time.Millisecond, func() { s.nodes[1].Text = "idle" })
			s.later(150*time.Millisecond, func() { s.nodes[1].Text = "Saved" })
		}
		return s
	}, func(b *bench) { b.is(b.act(click("Save", says("status", "Saved"))), "", "") })
}
