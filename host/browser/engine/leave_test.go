package engine_test

import (
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// TestControlsAreLeft: a page that takes what was entered when the focus leaves has
// taken it by the time that the action is proved.
func TestControlsAreLeft(t *testing.T) {
	pick := request(engine.Select, named("combobox", "Theme"))
	pick.Select.Label = ptr("Dark")
	for ref, r := range map[page.Ref]*engine.Request{"n0": fillMail("x"), "n1": tick(), "n2": pick, "n3": adjust(30)} {
		within(t, form, func(b *bench) {
			b.left[ref] = func() { b.nodes[4].Text = "kept" }
			r.Expect = says("status", "kept")
			if b.is(b.act(r), "", ""); b.calls["leave"] != 1 {
				t.Errorf("%s: left %d times", r.Verb, b.calls["leave"])
			}
		})
		within(t, form, func(b *bench) { // it throws it away instead
			b.left[ref] = func() {
				b.nodes[0].State.TextValue, b.nodes[1].State.Checked = ptr(""), ptr(false)
				b.nodes[2].State.Selected, b.nodes[3].State.Value = &page.Option{ID: "light", Label: "Light"}, ptr(10.0)
			}
			r.Expect, r.Deadline = nil, 60e9
			if got := b.act(r); got.Success {
				t.Errorf("%s is verified", r.Verb)
			}
		})
	}
	within(t, form, func(b *bench) { // written in the page's own way
		b.left["n0"] = func() { b.nodes[0].State.TextValue = ptr("1,234.50") }
		b.is(b.act(fillMail("1234.5")), "", "")
	})
	within(t, form, func(b *bench) { // the focus is what is wanted
		r := fillMail("x")
		r.Expect = &engine.Predicate{Kind: "focused", Bool: ptr(true), Target: named("textbox", "Mail")}
		if b.act(r); b.calls["leave"] != 0 {
			t.Error("it was left")
		}
	})
}

// TestKeysGoOnWhereOneTyped: keys without a target reach the field that was filled, as
// if nobody had left it, unless something else has the focus.
func TestKeysGoOnWhereOneTyped(t *testing.T) {
	press := func() *engine.Request {
		r := request(engine.Press, nil)
		r.Press = engine.PressArgs{Chords: []string{"Enter"}, Count: 1}
		r.Expect = says("status", "Saved")
		return r
	}
	within(t, form, func(b *bench) {
		b.is(b.act(fillMail("x")), "", "")
		b.on["n0"] = b.on["n5"]
		b.is(b.act(press()), "", "")
	})
	within(t, form, func(b *bench) {
		b.is(b.act(fillMail("x")), "", "")
		b.nodes[5].State.Focused = ptr(true)
		b.on[""] = b.on["n5"]
		b.is(b.act(press()), "", "")
	})
}
