package engine_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

func checkbox(on bool) *page.Node {
	return &page.Node{Tag: "input", Type: "checkbox", Role: "checkbox", Name: "Terms", Native: true,
		State: page.State{Checked: &on}}
}

func slider(native bool, value, step float64) *page.Node {
	n := &page.Node{Tag: "div", Role: "slider", Name: "Volume", Tabbable: true,
		State: page.State{Value: &value, Range: &page.Range{Min: 0, Max: 100, Step: step}}}
	if native {
		n.Tag, n.Type, n.Native = "input", "range", true
	}
	return n
}

func theme() *page.Node {
	return &page.Node{Tag: "select", Role: "combobox", Name: "Theme", Native: true,
		State: page.State{Selected: &page.Option{ID: "light", Label: "Light"}},
		Options: []page.Option{{ID: "light", Label: "Light"}, {ID: "dark", Label: "Dark"},
			{ID: "old", Label: "Old", Disabled: true}}}
}

func TestCheck(t *testing.T) {
	within(t, func() *site {
		s := newSite(checkbox(false))
		s.on["n0"] = func() { s.nodes[0].State.Checked = ptr(!*s.nodes[0].State.Checked) }
		return s
	}, func(b *bench) {
		r := request(engine.Check, named("checkbox", "Terms"))
		r.Check = true
		got := b.act(r)
		b.is(got, "", "")
		d := got.Details.(map[string]any)
		if d["checked"] != true || d["previous"] != false || b.sent != 1 || got.ActionType != engine.LocalState {
			t.Errorf("%v, sent %d", d, b.sent)
		}
		for _, force := range []bool{false, true} {
			r.Force = force
			got = b.act(r)
			if b.is(got, "", ""); b.sent != 1 || got.Dispatched || got.Details.(map[string]any)["already_satisfied"] != true {
				t.Errorf("force %v: sent %d, %+v", force, b.sent, got.Details)
			}
		}
	})
	within(t, func() *site { return newSite(button("Save")) }, func(b *bench) {
		b.is(b.act(request(engine.Check, named("button", "Save"))), engine.SemanticMismatch, "state_unavailable")
	})
}

// TestCheckByLabel: a page that draws its own box hides the control; its label is
// clicked, and the control proves it.
func TestCheckByLabel(t *testing.T) {
	within(t, func() *site {
		box := checkbox(false)
		s := newSite(box, &page.Node{Tag: "label", Text: "Terms", Labels: "n0"})
		box.Visible = false
		s.on["n1"] = func() { s.nodes[0].State.Checked = ptr(!*s.nodes[0].State.Checked) }
		return s
	}, func(b *bench) {
		r := request(engine.Check, named("checkbox", "Terms"))
		r.Check = true
		got := b.act(r)
		b.is(got, "", "")
		if d := got.Details.(map[string]any); d["checked"] != true || d["previous"] != false ||
			got.ActionType != engine.LocalState || got.Target.Resolution.Reason != "label_of_hidden_control" {
			t.Errorf("%v %+v", d, got.Target.Resolution)
		}
	})
}

func TestFill(t *testing.T) {
	within(t, func() *site { return newSite(field("Mail")) }, func(b *bench) {
		r := request(engine.Fill, named("textbox", "Mail"))
		r.Type.Plain = "a@b.test"
		got := b.act(r)
		b.is(got, "", "")
		for _, rec := range b.records {
			if strings.Contains(toJSON(t, rec.Trace), "a@b") {
				t.Errorf("typed text is in the trace: %s", toJSON(t, rec.Trace))
			}
		}
		if len(b.records) != 1 || got.Details.(map[string]any)["length"] != 8 || got.Verification.DeltaOrigin != "default" {
			t.Errorf("%v", got.Details)
		}
		if b.is(b.act(r), "", ""); b.calls["fill"] != 1 {
			t.Error("filled again")
		}
		r.Force = true
		if b.is(b.act(r), "", ""); b.calls["fill"] != 2 {
			t.Error("force: not filled")
		}
		r.Verb, r.Type.Plain, r.Force = engine.Clear, "", false
		if b.is(b.act(r), "", ""); *b.nodes[0].State.TextValue != "" {
			t.Error("not cleared")
		}
		b.nodes[0].ReadOnly = true
		r.Verb, r.Type.Plain, r.Actionable = engine.Fill, "x", 0
		b.is(b.act(r), engine.ActionRejected, "readonly")
	})
}

func TestFieldThatResetsItself(t *testing.T) {
	within(t, func() *site {
		s := newSite(field("Mail"))
		s.on["n0"] = func() { s.nodes[0].State.TextValue = ptr("") }
		return s
	}, func(b *bench) {
		r := request(engine.Fill, named("textbox", "Mail"))
		r.Type.Plain = "x"
		b.is(b.act(r), engine.VerificationFailed, "")
	})
}

// vault has one sealed value.
type vault struct {
	refuse    *engine.Refusal
	page      string
	frame     string
	submitted int
}

const password = "correct horse battery staple"

func (v *vault) Value(handle, pageOrigin, frameOrigin string, _ page.Node) (string, *engine.Refusal) {
	v.page, v.frame = pageOrigin, frameOrigin
	return password, v.refuse
}

func (v *vault) Login(origin string, handles ...string) ([]string, *engine.Refusal) {
	v.page = origin
	return []string{password, password}[:len(handles)], v.refuse
}

func (v *vault) Hide(text string) string {
	return strings.ReplaceAll(text, password, "sluice-sealed-v1-x")
}
func (v *vault) Submitted() { v.submitted++ }

func TestSealedFill(t *testing.T) {
	within(t, func() *site {
		s := newSite(field("Code"), button("Log in"), text("status", "idle"))
		s.on["n1"] = func() { s.nodes[2].Text = "in" }
		return s
	}, func(b *bench) {
		v := &vault{}
		b.engine = engine.New(engine.Options{Browser: b.site, Identity: b.identity, Secrets: v})
		r := request(engine.Fill, named("textbox", "Code"))
		r.Type.Sealed = "sluice-sealed-v1-x"
		got := b.act(r)
		b.is(got, "", "")
		if *b.nodes[0].State.TextValue != password || v.page != "https://shop.test" || v.frame != "https://shop.test" {
			t.Errorf("typed %q at %s", *b.nodes[0].State.TextValue, v.page)
		}
		if _, told := got.Details.(map[string]any)["length"]; told {
			t.Error("the length of a sealed value is told")
		}
		silent(t, got)
		x := request(engine.Expect, nil)
		x.Expect = &engine.Predicate{Kind: "text_value", String: ptr("sluice-sealed-v1-x"), Target: named("textbox", "Code")}
		reply := b.expect(x)
		if !reply.Success {
			t.Errorf("compared with its handle: %+v", reply)
		}
		silent(t, reply)
		e := request(engine.Extract, nil)
		e.Extract = []engine.ExtractItem{{Name: "code", Take: "value", Target: named("textbox", "Code")}}
		raw, refused := b.engine.Do(context.Background(), e)
		if refused != nil || string(raw.(*engine.ExtractReply).Items["code"]) != `"sluice-sealed-v1-x"` {
			t.Errorf("extract: %v %v", raw, refused)
		}
		b.is(b.act(click("Log in", says("status", "in"))), "", "")
		if b.act(click("Log in", says("status", "in"))); v.submitted != 1 {
			t.Errorf("told %d times", v.submitted)
		}
		b.change(func() { b.nodes[2].Text = "welcome " + password }) // the page says it aloud
		aloud := &engine.Target{Selector: &engine.Selector{Selector: page.Selector{TestID: "status"}}}
		for guess, holds := range map[string]bool{"welcome": true, "welcome c": false, "correct": false, "horse": false,
			"welcome sluice-sealed-v1-x": true} {
			x.Expect = &engine.Predicate{Kind: "text", Op: "contains", Text: guess, Target: aloud}
			if reply = b.expect(x); reply.Success != holds {
				t.Errorf("%q is answered with %v", guess, reply.Success)
			}
			if strings.Contains(toJSON(t, reply), password) {
				t.Errorf("%+v", reply)
			}
		}
		x.Expect = &engine.Predicate{Kind: "text_value", String: ptr("sluice-sealed-v1-x"), Target: named("textbox", "Code")}
		b.change(func() { b.nodes[0].State.TextValue = ptr(password + "!") })
		x.Expect.String = ptr(password)
		if reply = b.expect(x); reply.Success {
			t.Error("the plain value can be guessed")
		}
		b.engine.Close()
	})
	within(t, func() *site { return newSite(field("Code")) }, func(b *bench) {
		v := &vault{refuse: &engine.Refusal{Code: "sealed_destination_denied"}}
		b.engine = engine.New(engine.Options{Browser: b.site, Identity: b.identity, Secrets: v})
		r := request(engine.Fill, named("textbox", "Code"))
		r.Type.Sealed = "sluice-sealed-v1-x"
		if _, refused := b.engine.Do(context.Background(), r); refused == nil ||
			refused.Code != "sealed_destination_denied" || b.sent != 0 {
			t.Errorf("refused %v, sent %d", refused, b.sent)
		}
	})
}

// silent fails for a reply that has the password in it.
func silent(t *testing.T, reply any) {
	t.Helper()
	if strings.Contains(toJSON(t, reply), "horse") {
		t.Errorf("the password is in %s", toJSON(t, reply))
	}
}

func TestSelect(t *testing.T) {
	within(t, func() *site { return newSite(theme()) }, func(b *bench) {
		r := request(engine.Select, named("combobox", "Theme"))
		r.Select.Label = ptr("Dark")
		got := b.act(r)
		if b.is(got, "", ""); toJSON(t, got.Details.(map[string]any)["selected"]) != `{"id":"dark","label":"Dark"}` ||
			b.calls["click"] != 0 {
			t.Errorf("%v", got.Details)
		}
		r.Select.Label, r.Actionable = ptr("Old"), 0
		b.is(b.act(r), engine.ActionRejected, "disabled")
		r.Select.Label = ptr("Purple")
		b.is(b.act(r), engine.ElementNotFound, "no_such_option")
		b.nodes[0].Multiple = true
		b.is(b.act(r), engine.SemanticMismatch, "")
	})
}

func TestSelectOfACustomControl(t *testing.T) {
	within(t, func() *site {
		box := &page.Node{Tag: "div", Role: "combobox", Name: "Theme", Tabbable: true, Popup: true,
			State: page.State{Selected: &page.Option{ID: "l", Label: "Light"}}}
		s := newSite(box)
		dark := &page.Node{Ref: "dark", Tag: "li", Role: "option", Name: "Dark", Text: "Dark"}
		s.on["n0"] = func() {
			if len(s.nodes) == 1 {
				s.add(dark)
				box.Options = []page.Option{{ID: "d", Label: "Dark", Ref: "dark"}}
			}
		}
		s.on["dark"] = func() { box.State.Selected = &page.Option{ID: "d", Label: "Dark"} }
		return s
	}, func(b *bench) {
		r := request(engine.Select, named("combobox", "Theme"))
		r.Select.Label = ptr("Dark")
		b.is(b.act(r), "", "")
		if b.sent != 2 {
			t.Errorf("clicked %d times", b.sent)
		}
	})
}

func adjust(value float64) *engine.Request {
	r := request(engine.Adjust, named("slider", "Volume"))
	r.Adjust.Value = value
	return r
}

func TestAdjust(t *testing.T) {
	within(t, func() *site { return newSite(slider(true, 10, 0)) }, func(b *bench) {
		got := b.act(adjust(30))
		b.is(got, "", "")
		d := got.Details.(map[string]any)
		if d["adjustment_mode"] != "semantic" || d["attempts"] != 1 || d["converged"] != true ||
			d["within_tolerance"] != true || d["degraded"] != false {
			t.Errorf("%v", d)
		}
		sent := b.sent
		got = b.act(adjust(30))
		if d = got.Details.(map[string]any); b.sent != sent || d["attempts"] != 0 || d["adjustment_mode"] != "semantic" {
			t.Errorf("%v", d)
		}
		r := adjust(101)
		r.Actionable = 0
		b.is(b.act(r), engine.ActionRejected, "out_of_range")
	})
	within(t, func() *site { return newSite(button("Volume")) }, func(b *bench) {
		r := adjust(3)
		r.Target = named("button", "Volume")
		b.is(b.act(r), engine.SemanticMismatch, "")
	})
}

// TestAdjustSnaps: a control that keeps to its steps converges only within tolerance.
func TestAdjustSnaps(t *testing.T) {
	snap := func() *site {
		s := newSite(slider(true, 10, 5))
		s.on["n0"] = func() { s.nodes[0].State.Value = ptr(math.Round(*s.nodes[0].State.Value/5) * 5) }
		return s
	}
	within(t, snap, func(b *bench) {
		r := adjust(33)
		r.Deadline = 30 * 1e9
		got := b.act(r)
		b.is(got, engine.ConvergenceFailed, "")
		if d := got.Details.(map[string]any); d["converged"] != false ||
			toJSON(t, d["actual_state"]) != `{"property":"value","value":35}` || d["degraded"] != false ||
			b.calls["click"] != 0 {
			t.Errorf("%v", d)
		}
	})
	within(t, snap, func(b *bench) {
		r := adjust(33)
		r.Deadline, r.Adjust.WidenTo = 30*1e9, ptr(2.0)
		got := b.act(r)
		if b.is(got, "", ""); got.Recovery == nil || got.Recovery.Strategy != engine.RetryAdjustment {
			t.Errorf("%+v", got.Recovery)
		}
	})
}

// TestAdjustByKeys: an ARIA slider has no setter and is worked by its keys.
func TestAdjustByKeys(t *testing.T) {
	within(t, func() *site {
		s := newSite(slider(false, 10, 0))
		s.on["n0"] = func() {
			n := s.nodes[0]
			key, count, ok := strings.Cut(n.Description, "*")
			if !ok {
				return
			}
			by := 2.0 * float64(len(strings.Repeat("x", atoi(count))))
			if key == "ArrowDown" {
				by = -by
			}
			n.Description = ""
			n.State.Value = ptr(*n.State.Value + by)
		}
		return s
	}, func(b *bench) {
		got := b.act(adjust(50))
		b.is(got, "", "")
		if d := got.Details.(map[string]any); d["adjustment_mode"] != "gesture" || b.calls["press"] != 2 {
			t.Errorf("%v after %d presses", d, b.calls["press"])
		}
	})
}

// TestAdjustByCoordinates: only where nothing else moved the value.
func TestAdjustByCoordinates(t *testing.T) {
	within(t, func() *site {
		s := newSite(slider(false, 10, 0))
		clicked := func() {
			if s.calls["click"] > 0 {
				s.nodes[0].State.Value = ptr(60.0)
			}
		}
		s.on["n0"] = clicked
		return s
	}, func(b *bench) {
		r := adjust(60)
		r.Deadline = 30 * 1e9
		got := b.act(r)
		b.is(got, "", "")
		if d := got.Details.(map[string]any); d["adjustment_mode"] != "coordinate" || d["degraded"] != true ||
			d["degraded_reason"] == nil || b.counts["coordinate_fallback_total"] != 1 {
			t.Errorf("%v", d)
		}
	})
}

func TestScroll(t *testing.T) {
	within(t, func() *site {
		s := newSite(text("row", "Row 90"))
		s.nodes[0].InView = false
		return s
	}, func(b *bench) {
		r := request(engine.Scroll, tested("row"))
		got := b.act(r)
		if b.is(got, "", ""); got.Details.(map[string]any)["scrolls_performed"] != 1 ||
			got.Details.(map[string]any)["in_viewport"] != true {
			t.Errorf("%v", got.Details)
		}
		got = b.act(r)
		if b.is(got, "", ""); got.Details.(map[string]any)["scrolls_performed"] != 0 {
			t.Errorf("%v", got.Details)
		}
	})
	within(t, func() *site { return newSite(text("row", "Row 1")) }, func(b *bench) { // the end is reached
		r := request(engine.Scroll, nil)
		r.Scroll.Direction = "down"
		b.is(b.act(r), engine.VerificationFailed, "scroll_no_change")
	})
	within(t, func() *site { // a row that is made when it comes near
		s := newSite(text("row1", "Row 1"))
		s.on["scroll"] = func() {
			s.scroll.Y += 500
			if s.scroll.Y == 1500 {
				s.add(text("row90", "Row 90"))
			}
		}
		return s
	}, func(b *bench) {
		got := b.act(request(engine.Scroll, tested("row90")))
		if b.is(got, "", ""); b.calls["scroll"] != 3 {
			t.Errorf("scrolled %d times", b.calls["scroll"])
		}
	})
}

func TestHoverAndPress(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.is(b.act(request(engine.Hover, named("button", "Save"))), "", "")
		b.nodes[1].Text = "idle"
		r := request(engine.Press, named("button", "Save"))
		r.Press = engine.PressArgs{Chords: []string{"Enter"}, Count: 1}
		r.Expect = says("status", "Saved")
		b.is(b.act(r), "", "")
		r.Press.Chords = []string{"Nonsense"}
		r.Expect = nil
		if _, refused := b.engine.Do(context.Background(), r); refused == nil || refused.Code != "invalid_request" {
			t.Errorf("%v", refused)
		}
	})
}

func TestNavigate(t *testing.T) {
	within(t, shop, func(b *bench) {
		r := request(engine.Navigate, nil)
		r.Navigate = engine.NavigateArgs{URL: "https://shop.test/next", Until: "dom"}
		got := b.act(r)
		if b.is(got, "", ""); got.Details.(map[string]any)["status"] != 200 || !got.Idempotent {
			t.Errorf("%v", got.Details)
		}
		for err, detail := range map[error]string{page.ErrHost: "host_denied", page.ErrScheme: "scheme_denied"} {
			b.hook = func(at string, _ int) error {
				if at == "navigate" {
					return err
				}
				return nil
			}
			got = b.act(r)
			if b.is(got, engine.ActionRejected, detail); got.Dispatched {
				t.Errorf("%s: dispatched", detail)
			}
		}
		b.hook = func(at string, _ int) error { // a page that hangs can be left
			if at == "read" && b.calls["navigate"] < 4 {
				return errHang
			}
			return nil
		}
		b.calls["navigate"] = 3
		b.is(b.act(r), "", "")
	})
}

// shelf stages files.
type shelf struct{ released int }

func (s *shelf) Stage(context.Context, []engine.File) ([]engine.StagedFile, func(), *engine.Refusal) {
	return []engine.StagedFile{{Path: "/tmp/x", Name: "a.pdf", Bytes: 3}}, func() { s.released++ }, nil
}

func TestUpload(t *testing.T) {
	within(t, func() *site {
		s := newSite(&page.Node{Tag: "input", Type: "file", TestID: "pick", Native: true})
		s.nodes[0].Visible = false // they mostly are
		return s
	}, func(b *bench) {
		files := &shelf{}
		b.engine = engine.New(engine.Options{Browser: b.site, Identity: b.identity, Files: files})
		r := request(engine.Upload, tested("pick"))
		r.Upload = []engine.File{{Handle: 17}}
		got := b.act(r)
		if b.is(got, "", ""); files.released != 0 ||
			toJSON(t, got.Details.(map[string]any)["files"]) != `[{"name":"a.pdf","bytes":3}]` {
			t.Errorf("what a page may still read is gone: released %d, %v", files.released, got.Details)
		}
		again := request(engine.Upload, tested("pick"))
		again.Upload, again.AllowPreexist = []engine.File{{Handle: 18}}, true
		if b.is(b.act(again), "", ""); files.released != 1 {
			t.Errorf("what the control was given before: released %d", files.released)
		}
		b.change(func() { b.document += "+" })
		b.act(click("", nil))
		if files.released != 2 {
			t.Errorf("the document is gone: released %d", files.released)
		}
		b.engine.Close()
		if files.released != 2 {
			t.Errorf("released %d times", files.released)
		}
	})
}

func TestElementIDs(t *testing.T) {
	within(t, shop, func(b *bench) {
		id := b.act(click("Save", says("status", "Saved"))).Target.Resolved.ElementID
		r := click("", nil)
		r.Target = &engine.Target{ElementID: "el_never"}
		reads := b.calls["read"]
		got := b.act(r)
		if b.is(got, engine.StaleReference, ""); b.calls["read"] != reads || got.FingerprintBefore != nil {
			t.Errorf("%d reads", b.calls["read"]-reads)
		}
		b.change(func() { // another node like it
			n := *b.nodes[0]
			n.Ref = "n9"
			b.nodes[0] = &n
			b.nodes[1].Text = "ready"
			b.on["n9"] = b.on["n0"]
		})
		r.Target, r.Expect = &engine.Target{ElementID: id}, says("status", "Saved")
		sent := b.sent
		if b.is(b.act(r), engine.StaleReference, ""); b.sent != sent {
			t.Error("clicked")
		}
		r.Rebind = true
		got = b.act(r)
		if b.is(got, "", ""); got.Details.(map[string]any)["rebound"] != true || got.Recovery.Strategy != engine.ReResolve {
			t.Errorf("%v %+v", got.Details, got.Recovery)
		}
		b.engine.Released()
		r.Target.ElementID, r.Rebind = got.Target.Resolved.ElementID, false
		b.is(b.act(r), engine.StaleReference, "")
	})
}
