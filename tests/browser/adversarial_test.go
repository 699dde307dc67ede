package browser_test

import (
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
)

// TestLies: nothing on these pages is ever reported as verified, and what has a side
// effect is posted at most once.
func TestLies(t *testing.T) {
	for _, c := range []struct {
		page, more string
		code       engine.Code
		detail     string
	}{
		{"noop", "}", engine.VerificationFailed, ""},
		{"wrong", "}", engine.VerificationFailed, ""},
		{"rolled", `,"verify":{"stable_count":5}}`, engine.VerificationFailed, ""},
		{"before", "}", engine.VerificationFailed, "already_true_before"},
		{"flees", "}", engine.StaleReference, "changed_before_dispatch"},
		{"covered", `,"actionable_timeout_ms":700}`, engine.ActionRejected, "obscured"},
		{"oscillates", `,"verify":{"stable_count":4},"recovery":{"max_recovery_attempts":1}}`, engine.VerificationFailed, ""},
		{"endless", `,"deadline_ms":4000}`, engine.Timeout, ""},
	} {
		t.Run(c.page, func(t *testing.T) {
			b := newBench(t)
			b.on(c.page)
			before := one.server.count(c.page)
			r := b.act(save + c.more)
			b.is(r, c.code, c.detail)
			if r.Success || r.Terminal == nil || r.Terminal.Class == "" {
				t.Errorf("a failure without class and terminal object: %s", show(t, r))
			}
			if n := one.server.count(c.page) - before; n > 1 {
				t.Errorf("%d posts, want at most one", n)
			}
			if c.page == "endless" {
				_ = one.browser.Interrupt(t.Context())
			}
		})
	}
}

// TestFlaky: on pages that are flaky but usable, the first call succeeds.
func TestFlaky(t *testing.T) {
	for _, name := range []string{"honest", "late", "rerender", "fades", "moves", "spins", "slow", "below",
		"shadow", "form", "shies"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.on(name)
			before := one.server.count(name) // other tests use the page, too
			r := b.act(save + `,"deadline_ms":15000}`)
			b.is(r, "", "")
			if n := one.server.count(name) - before; n > 1 {
				t.Errorf("%d posts, want at most one", n)
			}
		})
	}
}

func TestFrames(t *testing.T) {
	for _, name := range []string{"inside", "other"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.on(name)
			b.is(b.act(`{"verb":"click","target":{"selector":{"role":"button","name":"Save"}},"expect":{"kind":"exists","target":{"selector":{"text":"Saved"}}}}`), "", "")
		})
	}
}

func TestDialogs(t *testing.T) {
	b := newBench(t)
	b.on("alert")
	r := b.act(save + `,"on_dialog":"accept"}`)
	b.is(r, "", "")
	if d, _ := r.Details.(map[string]any)["dialog"].(map[string]any); d["type"] != "confirm" ||
		d["answer"] != "accepted" || d["message_length"] != 7 {
		t.Errorf("the dialog in the details: %v", r.Details)
	}
	b.on("alert")
	b.is(b.act(save+`}`), engine.VerificationFailed, "")
}

func TestNavigation(t *testing.T) {
	b := newBench(t)
	b.on("link")
	b.is(b.act(`{"verb":"click","target":{"selector":{"role":"link","name":"Next"}},"expect":{"kind":"navigation"}}`), "",
		"")
	b.is(b.act(`{"verb":"navigate","history":"back"}`), "", "")
	b.is(b.act(`{"verb":"navigate","history":"reload"}`), "", "")
	r := b.act(`{"verb":"navigate","url":"http://shop.test/page/link#part"}`)
	b.is(r, "", "")
	if r.Details.(map[string]any)["same_document"] != true {
		t.Errorf("a fragment is the same document: %v", r.Details)
	}
}
