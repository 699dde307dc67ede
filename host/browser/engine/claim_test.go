package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// form has a field, a box, a list, a slider, a status and a button.
func form() *site {
	s := newSite(field("Mail"), checkbox(false), theme(), slider(true, 10, 0), text("status", "idle"), button("Save"))
	s.on["n1"] = func() { s.nodes[1].State.Checked = ptr(!*s.nodes[1].State.Checked) }
	s.on["n5"] = func() { s.nodes[4].Text = "Saved" }
	return s
}

func fillMail(what string) *engine.Request {
	r := request(engine.Fill, named("textbox", "Mail"))
	r.Type.Plain = what
	return r
}

func tick() *engine.Request {
	r := request(engine.Check, named("checkbox", "Terms"))
	r.Check = true
	return r
}

// takenBack is what an earlier action came to in the end, as it was told.
func (b *bench) takenBack(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.signals {
		if s.ActionID == id && s.Verification == "reverted" && s.Code == engine.VerificationFailed {
			for _, r := range b.records {
				if r.Amended && r.Result.ActionID == id {
					return r.Result.Verification.Result == "reverted" && !r.Result.Success && r.Trace.Outcome == "failure"
				}
			}
		}
	}
	return false
}

// TestRevertedIsCaught: whatever a control was verified to hold, and lost later, fails
// the next effect before it is dispatched, once, and by name.
func TestRevertedIsCaught(t *testing.T) {
	pick := request(engine.Select, named("combobox", "Theme"))
	pick.Select.Label = ptr("Dark")
	for name, c := range map[string]struct {
		do   *engine.Request
		back func(b *bench)
	}{
		"fill":    {fillMail("x"), func(b *bench) { b.nodes[0].State.TextValue = ptr("") }},
		"clamped": {fillMail("x"), func(b *bench) { b.nodes[0].State.TextValue = ptr("y") }},
		"check":   {tick(), func(b *bench) { b.nodes[1].State.Checked = ptr(false) }},
		"select":  {pick, func(b *bench) { b.nodes[2].State.Selected = &page.Option{ID: "light", Label: "Light"} }},
		"adjust":  {adjust(30), func(b *bench) { b.nodes[3].State.Value = ptr(10.0) }},
		"drawn anew": {fillMail("x"), func(b *bench) {
			n := *b.nodes[0]
			n.Ref, n.State.TextValue = "n9", ptr("")
			b.nodes[0] = &n
		}},
	} {
		for _, after := range []time.Duration{150 * time.Millisecond, 2 * time.Second} {
			t.Run(name, func(t *testing.T) {
				within(t, form, func(b *bench) {
					first := b.act(c.do)
					b.is(first, "", "")
					b.later(after, func() { c.back(b) })
					time.Sleep(after + time.Millisecond)
					sent := b.sent
					got := b.act(click("Save", says("status", "Saved")))
					b.is(got, engine.VerificationFailed, "reverted")
					if b.sent != sent || got.Dispatched || got.Terminal == nil || len(got.Terminal.Strategies) > 0 {
						t.Errorf("sent %d: %+v", b.sent-sent, got.Terminal)
					}
					if d := toJSON(t, got.Details); !strings.Contains(d, first.ActionID) || strings.Contains(d, "equals") {
						t.Errorf("the earlier action is not named, or its text is: %s", d)
					}
					if !b.takenBack(first.ActionID) {
						t.Errorf("%+v", b.heard())
					}
					b.is(b.act(click("Save", says("status", "Saved"))), "", "") // it was told
				})
			})
		}
	}
}

// TestRevertedBeforeAnExtract: what is read, and the end, come after what was verified.
func TestRevertedBeforeAnExtract(t *testing.T) {
	lose := func(b *bench) string {
		first := b.act(fillMail("x"))
		b.is(first, "", "")
		b.change(func() { b.nodes[0].State.TextValue = ptr("") })
		return first.ActionID
	}
	extract := request(engine.Extract, nil)
	extract.Extract = []engine.ExtractItem{{Name: "status", Take: "text", Target: tested("status")}}
	for _, r := range []*engine.Request{extract, request(engine.Close, nil)} {
		within(t, form, func(b *bench) {
			id := lose(b)
			_, refused := b.engine.Do(context.Background(), r)
			if refused == nil || refused.Code != "action_reverted" ||
				!strings.Contains(refused.Message, id) || !b.takenBack(id) {
				b.Errorf("%s: %v", r.Verb, refused)
			}
			if _, refused = b.engine.Do(context.Background(), r); refused != nil {
				b.Errorf("%s is refused twice: %v", r.Verb, refused)
			}
		})
	}
	within(t, form, func(b *bench) { // nobody closes it
		id := lose(b)
		if b.engine.Close(); !b.takenBack(id) {
			b.Errorf("%+v", b.heard())
		}
	})
}

// TestTextThatIsTakenBack: a status that says what it said before was taken back, one
// that went on or a notice that is over was not.
func TestTextThatIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		then  func(s *site)
		after time.Duration
		back  bool
	}{
		"says what it said before": {func(s *site) { s.nodes[4].Text = "idle" }, 2 * time.Second, true},
		"says something new":       {func(s *site) { s.nodes[4].Text = "All changes saved" }, 300 * time.Millisecond, false},
		"is emptied":               {func(s *site) { s.nodes[4].Text = "" }, 300 * time.Millisecond, false},
		"goes": {func(s *site) { s.nodes = append(s.nodes[:4:4], s.nodes[5]) },
			300 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, form, func(b *bench) {
				b.is(b.act(click("Save", says("status", "Saved"))), "", "")
				time.Sleep(c.after)
				b.change(func() { c.then(b.site) })
				want, detail := engine.Code(""), ""
				if c.back {
					want, detail = engine.VerificationFailed, "reverted"
				}
				b.is(b.act(fillMail("x")), want, detail)
			})
		})
	}
}

// TestNoticeThatGoes: what was shown and vanishes at once was taken back; a notice that
// was there to be read was not.
func TestNoticeThatGoes(t *testing.T) {
	for after, code := range map[time.Duration]engine.Code{400 * time.Millisecond: engine.VerificationFailed,
		3 * time.Second: ""} {
		within(t, func() *site {
			s := form()
			s.on["n5"] = func() { s.add(text("notice", "Saved")) }
			return s
		}, func(b *bench) {
			b.is(b.act(click("Save", &engine.Predicate{Kind: "visible", Target: tested("notice")})), "", "")
			time.Sleep(after)
			b.change(func() { b.nodes = b.nodes[:6] })
			if got := b.act(tick()); got.Success != (code == "") {
				t.Errorf("after %v: %+v", after, got)
			}
		})
	}
}

// TestWhatIsNoReversion: changes that somebody meant.
func TestWhatIsNoReversion(t *testing.T) {
	save := click("Save", says("status", "Saved"))
	radio := func(name string, on bool) *page.Node {
		return &page.Node{Tag: "input", Type: "radio", Role: "radio", Name: name, Native: true,
			State: page.State{Checked: &on}}
	}
	for name, c := range map[string]struct {
		site func() *site
		do   func(b *bench)
	}{
		"a later action on the same element": {form, func(b *bench) {
			b.is(b.act(fillMail("x")), "", "")
			b.is(b.act(fillMail("y")), "", "")
		}},
		"even after a reversion": {form, func(b *bench) {
			b.is(b.act(fillMail("x")), "", "")
			b.change(func() { b.nodes[0].State.TextValue = ptr("") })
			b.is(b.act(fillMail("x")), "", "")
		}},
		"a form that its own button resets": {func() *site {
			s := form()
			s.on["n5"] = func() {
				s.nodes[4].Text, s.nodes[0].State.TextValue, s.nodes[1].State.Checked = "Saved", ptr(""), ptr(false)
			}
			return s
		}, func(b *bench) {
			b.is(b.act(fillMail("x")), "", "")
			b.is(b.act(tick()), "", "")
			b.is(b.act(save), "", "")
			b.is(b.act(fillMail("y")), "", "")
		}},
		"a document that is left": {form, func(b *bench) {
			b.is(b.act(fillMail("x")), "", "")
			b.change(func() { b.document, b.nodes[0].State.TextValue = "d2", ptr("") })
		}},
		"another radio": {func() *site {
			s := newSite(radio("A", false), radio("B", false), text("status", "idle"), button("Save"))
			choose := func(i int) func() {
				return func() { s.nodes[0].State.Checked, s.nodes[1].State.Checked = ptr(i == 0), ptr(i == 1) }
			}
			s.on["n0"], s.on["n1"], s.on["n3"] = choose(0), choose(1), func() { s.nodes[2].Text = "Saved" }
			return s
		}, func(b *bench) {
			for _, name := range []string{"A", "B"} {
				r := request(engine.Check, named("radio", name))
				r.Check = true
				b.is(b.act(r), "", "")
			}
		}},
		"an option that is clicked": {func() *site {
			s := form()
			o := button("Berlin")
			o.Tag, o.Role = "li", "option"
			s.add(o)
			s.on["n6"] = func() { s.nodes[0].State.TextValue = ptr("Berlin") }
			return s
		}, func(b *bench) {
			b.is(b.act(fillMail("Ber")), "", "")
			r := click("", &engine.Predicate{Kind: "text_value", String: ptr("Berlin"), Target: named("textbox", "Mail")})
			r.Target = named("option", "Berlin")
			b.is(b.act(r), "", "")
		}},
		"a moment while it is drawn": {form, func(b *bench) {
			b.is(b.act(fillMail("x")), "", "")
			b.change(func() { b.nodes[0].State.TextValue = ptr("") })
			b.later(120*time.Millisecond, func() { b.nodes[0].State.TextValue = ptr("x") })
		}},
		"the owner": {form, func(b *bench) {
			b.is(b.act(fillMail("x")), "", "")
			b.change(func() { b.nodes[0].State.TextValue = ptr("z") })
			b.engine.Released()
		}},
		"what goes": {form, func(b *bench) {
			b.is(b.act(fillMail("x")), "", "")
			time.Sleep(2 * time.Second)
			b.change(func() { b.nodes = b.nodes[1:] })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, c.site, func(b *bench) {
				c.do(b)
				b.change(func() {
					for _, n := range b.nodes {
						if n.TestID == "status" {
							n.Text = "idle"
						}
					}
				})
				if got := b.act(save); got.Detail != nil && *got.Detail == "reverted" {
					t.Errorf("a false alarm: %s", toJSON(t, got.Details))
				}
				b.engine.Close()
				for _, s := range b.heard() {
					if s.Verification == "reverted" {
						t.Errorf("told as reverted: %+v", s)
					}
				}
			})
		})
	}
}

// TestClaimsCostNoLook: while everything holds, the claims are read in looks that are
// made anyway.
func TestClaimsCostNoLook(t *testing.T) {
	reads := func(first bool) (n int) {
		within(t, form, func(b *bench) {
			if first {
				b.is(b.act(fillMail("x")), "", "")
				b.is(b.act(tick()), "", "")
			}
			before := b.calls["read"]
			b.is(b.act(click("Save", says("status", "Saved"))), "", "")
			n = b.calls["read"] - before
		})
		return n
	}
	if with, without := reads(true), reads(false); with != without {
		t.Errorf("%d looks with claims, %d without", with, without)
	}
}

// TestReleaseOfALostBrowser: what cannot be looked at is not taken back.
func TestReleaseOfALostBrowser(t *testing.T) {
	within(t, form, func(b *bench) {
		got := b.act(fillMail("x"))
		b.is(got, "", "")
		close(b.lost)
		if b.engine.Close(); b.takenBack(got.ActionID) {
			t.Error("taken back")
		}
	})
}
