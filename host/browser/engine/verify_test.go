package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

func TestDeferredIsProvedByAnExpect(t *testing.T) {
	within(t, shop, func(b *bench) {
		r := b.act(click("Save", nil))
		if r.State != engine.Pending || r.Success || r.Verification.Result != "deferred" || len(b.heard()) != 0 {
			t.Fatalf("pending: %+v", r)
		}
		x := request(engine.Expect, nil)
		x.Expect = says("status", "Saved")
		reply := b.expect(x)
		if !reply.Success || reply.ActionID != r.ActionID || reply.Reason != "text matches expected value" {
			t.Errorf("%+v", reply)
		}
		if len(b.heard()) != 1 || b.heard()[0].Verification != "verified" || b.heard()[0].ActionID != r.ActionID {
			t.Errorf("%+v", b.heard())
		}
		if r.State != engine.Pending {
			t.Error("the guest's copy of the result changed")
		}
	})
}

func TestDeferredFails(t *testing.T) {
	expect := func(id string) *engine.Request {
		x := request(engine.Expect, nil)
		x.Expect, x.ExpectArgs.ActionID = says("status", "Paid"), id
		return x
	}
	for name, end := range map[string]func(b *bench, id string){
		"never_verified":  func(b *bench, _ string) { settle(31 * time.Second) },
		"never_verified ": func(b *bench, _ string) { b.act(click("Save", says("status", "Saved"))) },
		"never_verified?": func(b *bench, _ string) { b.engine.Close() },
		"":                func(b *bench, id string) { b.expect(expect(id)) },
		"never_verified!": func(b *bench, id string) {
			b.expect(expect("act_other"))
			b.engine.Close()
		},
	} {
		within(t, shop, func(b *bench) {
			r := b.act(click("Save", nil))
			end(b, r.ActionID)
			if len(b.heard()) == 0 {
				t.Fatalf("%q: nothing was told", name)
			}
			s := b.heard()[0]
			if s.ActionID != r.ActionID || s.Code != engine.VerificationFailed ||
				(s.Reason == engine.ReasonTimeout) != (name != "") {
				t.Errorf("%q: %+v", name, s)
			}
			last := b.records[0].Trace.Steps[len(b.records[0].Trace.Steps)-1]
			for _, rec := range b.records {
				if rec.Result != nil && rec.Result.ActionID == r.ActionID {
					last = rec.Trace.Steps[len(rec.Trace.Steps)-1]
				}
			}
			if last.Stage != "recover" {
				t.Errorf("%q ends with %s", name, last.Stage)
			}
		})
	}
}

func TestDeferredWaitsInTimeThatCounts(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.act(click("Save", nil))
		settle(20 * time.Second)
		b.engine.Pause()
		time.Sleep(time.Hour)
		b.engine.Resume()
		settle(5 * time.Second)
		if len(b.heard()) != 0 {
			t.Fatal("the pause was counted")
		}
		settle(6 * time.Second)
		if len(b.heard()) != 1 {
			t.Fatal("never ended")
		}
	})
}

// settle lets time pass, and what is due in it happen.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestExpectCodes is what expect says of each end of the routine.
func TestExpectCodes(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		p    *engine.Predicate
		hook func(string, int) error
		want engine.Code
	}{
		"state":      {says("status", "Paid"), nil, engine.ExpectMismatch},
		"absent":     {says("nothing", "Paid"), nil, engine.ElementNotFound},
		"visible":    {&engine.Predicate{Kind: "visible", Bool: &yes, Target: tested("nothing")}, nil, engine.Timeout},
		"exists":     {&engine.Predicate{Kind: "exists", Bool: &yes, Target: tested("nothing")}, nil, engine.Timeout},
		"unreadable": {&engine.Predicate{Kind: "checked", Bool: &yes, Target: tested("status")}, nil, engine.ExpectMismatch},
		"hung":       {says("status", "idle"), func(string, int) error { return errHang }, engine.Timeout},
	} {
		within(t, shop, func(b *bench) {
			b.hook = c.hook
			x := request(engine.Expect, nil)
			x.Expect = c.p
			from := time.Now()
			reply := b.expect(x)
			if reply.Success || *reply.FailureCode != c.want || !*reply.Retryable {
				t.Errorf("%s: %+v", name, reply)
			}
			if time.Since(from) < 500*time.Millisecond {
				t.Errorf("%s failed after %v", name, time.Since(from))
			}
			if name == "unreadable" && (reply.Reason != "checked state unavailable" || reply.Detail != "state_unavailable") {
				t.Errorf("%q %q", reply.Reason, reply.Detail)
			}
			if len(reply.Trace.Steps) == 0 || reply.Trace.Outcome != "failure" {
				t.Errorf("%+v", reply.Trace)
			}
		})
	}
}

func TestExpectRepeatsWithinItsTimeout(t *testing.T) {
	within(t, shop, func(b *bench) {
		b.later(3*time.Second, func() { b.nodes[1].Text = "Saved" })
		x := request(engine.Expect, nil)
		x.Expect, x.ExpectArgs.Timeout = says("status", "Saved"), 5*time.Second
		if reply := b.expect(x); !reply.Success {
			t.Errorf("%+v", reply)
		}
	})
}

// TestRouting is the routing of verification, for what needs a page.
func TestRouting(t *testing.T) {
	failing := []page.RequestSeen{{Endpoint: "/save", Method: "POST", Status: 500, Verdict: "retryable"}}
	within(t, shop, func(b *bench) { // readable and silent
		delete(b.on, "n0")
		b.requests = failing
		r := b.act(click("Save", says("status", "Saved")))
		if r.Verification.Ambiguous || b.asked || b.counts["network_inspections_total"] != 0 {
			t.Errorf("%+v", r.Verification)
		}
		if d, _ := r.Verification.Diagnostics.(map[string]string); d["withheld"] != "not_ambiguous" {
			t.Errorf("%v", r.Verification.Diagnostics)
		}
	})
	within(t, shop, func(b *bench) { // nothing exposes the property
		delete(b.on, "n0")
		b.requests = failing
		yes := true
		r := b.act(click("Save", &engine.Predicate{Kind: "checked", Bool: &yes, Target: tested("status")}))
		if !r.Verification.Ambiguous || r.Verification.Result != "inconclusive" ||
			b.counts["network_inspections_total/side_effect"] != 1 {
			t.Errorf("%+v", r.Verification)
		}
		if r.Verification.Classification.Outcome != "backend_failure" {
			t.Errorf("%+v", r.Verification.Classification)
		}
	})
	within(t, func() *site { // local_state never looks at traffic
		n := button("Menu")
		n.State.Expanded = ptr(false)
		return newSite(n, text("status", "idle"))
	}, func(b *bench) {
		yes := true
		r := b.act(click("Menu", &engine.Predicate{Kind: "checked", Bool: &yes, Target: tested("status")}))
		b.is(r, engine.VerificationFailed, "state_unavailable")
		if b.asked || b.counts["network_inspections_total"] != 0 || r.ActionType != engine.LocalState ||
			r.ActionTypeSource != engine.FromHandler {
			t.Errorf("asked %v, %s from %s", b.asked, r.ActionType, r.ActionTypeSource)
		}
	})
	within(t, func() *site { // an accordion flips a property, and nothing else
		n := button("Menu")
		n.State.Expanded = ptr(false)
		s := newSite(n)
		s.on["n0"] = func() { n.State.Expanded = ptr(true) }
		return s
	}, func(b *bench) {
		yes := true
		b.is(b.act(click("Menu", &engine.Predicate{Kind: "expanded", Bool: &yes, Target: named("button", "Menu")})), "", "")
		if b.asked {
			t.Error("traffic was looked at")
		}
	})
}

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
