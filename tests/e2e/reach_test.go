package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// TestPhone: on a small screen no page is wider than the screen, and a question can be
// answered.
func TestPhone(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one",
		step{"do": "emit", "n": 20, "text": "a text that is as long as texts of records often are"},
		step{"do": "otp", "text": "Code?"})
	id := start(t, h.Client, "one")
	if _, err := h.Wait(soon(t), id, served.Asks); err != nil {
		t.Fatal(err)
	}
	b := signIn(t, h, false)
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch))
	for _, path := range []string{"/ui/", "/ui/inbox", "/ui/runs", "/ui/connections/one", "/ui/connections/one/grant",
		"/ui/records?connection=one&stream=items",
		"/ui/connectors/steps", "/ui/keys", "/ui/audit", "/ui/settings", "/ui/runs/" + string(id)} {
		b.open(path)
		if wide := eval[float64](b, `document.documentElement.scrollWidth - window.innerWidth`); wide > 0 {
			t.Errorf("%s is %v wider than the screen", path, wide)
			b.shot("wide")
		}
	}
	b.shot("run")
	b.do(chromedp.SendKeys(chromedp.CSS(`#asks input[name="f.code"]`), "1"))
	b.do(chromedp.ScrollIntoView(chromedp.CSS(`#asks article form button.primary`)),
		chromedp.Tap(chromedp.CSS(`#asks article form button.primary`)))
	if s, err := h.Wait(soon(t), id, served.Over); err != nil || s.Status != timeline.Completed {
		t.Errorf("%s %v", s.Status, err)
	}
	b.clean("a phone")
}

// tabTo presses Tab until an element has the focus, and fails if any focused element
// does not show it.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range 80 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if visible := eval[bool](b,
			`(() => { const s = getComputedStyle(document.activeElement); return document.activeElement === document.body || s.outlineStyle !== "none" || s.boxShadow !== "none" })()`); !visible {
			b.t.Errorf("no sign of the focus on %s", eval[string](b, `document.activeElement.outerHTML.slice(0, 200)`))
		}
		if eval[bool](b, `document.activeElement.matches(`+"`"+selector+"`"+`)`) {
			return
		}
	}
	b.t.Fatalf("Tab does not lead to %s", selector)
}

// TestKeyboard: a run is started, answered and read without a mouse.
func TestKeyboard(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit"}, step{"do": "otp", "text": "Code?"})
	b := signIn(t, h, false)
	b.tabTo(`a.skip`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.tabTo(`th a[href="/ui/connections/one"]`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`location.pathname === "/ui/connections/one" && document.readyState === "complete"`)
	b.tabTo(`form[hx-post="/ui/runs"] button.primary`)
	b.do(chromedp.KeyEvent(kb.Enter))
	id := b.runOf()
	b.until(`document.querySelector("#asks input[name='f.code']")`)
	b.tabTo(`#asks input[name="f.code"]`)
	b.shot("focus")
	b.do(chromedp.KeyEvent("4711"), chromedp.KeyEvent(kb.Enter))
	if s, err := h.Wait(soon(t), id, served.Over); err != nil || s.Status != timeline.Completed {
		t.Errorf("%s %v", s.Status, err)
	}
	b.tabTo(`nav a[href="/ui/data"]`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`location.pathname === "/ui/data"`)
	b.clean("the keyboard")
}
