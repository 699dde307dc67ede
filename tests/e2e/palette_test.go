//go:build unix

package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestPalette: Ctrl-K finds by keys alone, gives the focus back, and is as good by a finger.
func TestPalette(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit", "n": 3, "text": "An élan of <b>bold</b> words"})
	ended(t, h.Client, "one")
	b := signIn(t, h, false)
	b.open("/ui/settings")
	eval[any](b, `document.querySelector("[data-theme-switch]").focus()`)
	key := func(k string, with ...chromedp.KeyOption) { b.do(chromedp.KeyEvent(k, with...)) }
	finds := func(selector string) {
		t.Helper()
		b.until(`document.querySelector("#palette[open] #palette-found a[href` + selector + `]")`)
	}
	key("k", chromedp.KeyModifiers(2)) // Ctrl
	finds(`='/ui/runs'`)
	if at := eval[string](b, `document.activeElement.id`); at != "palette-words" {
		t.Errorf("the focus is on %q", at)
	}
	key("elan")
	finds(`^='/ui/record?connection=one'`)
	if got := eval[string](b,
		`document.querySelector("#palette-found mark").textContent + document.querySelectorAll("#palette-found b").length`); got != "élan0" {
		t.Errorf("%s", got)
	}
	b.shot("found")
	for _, f := range accessible(t, b) {
		t.Errorf("%s: %s: %+v", f.ID, f.Help, f.Nodes)
	}
	key(kb.Escape)
	b.until(`!document.querySelector("dialog[open]")`)
	if !eval[bool](b, `document.activeElement.matches("[data-theme-switch]")`) {
		t.Error("the focus does not come back")
	}
	key("?")
	b.until(`document.querySelector("#shortcuts[open]")`)
	b.shot("keys")
	key(kb.Escape)
	b.until(`!document.querySelector("dialog[open]")`)
	key("k", chromedp.KeyModifiers(2))
	key("elan")
	finds(`^='/ui/record?connection=one'`)
	key(kb.ArrowDown)
	key(kb.ArrowUp)
	key(kb.ArrowUp) // to the last
	key(kb.Enter)
	b.until(`location.pathname === "/ui/record" && document.readyState === "complete"`)

	b.phone()
	b.media("dark")
	b.open("/ui/")
	b.click(`[data-palette]`)
	finds(`='/ui/audit'`)
	key("one")
	finds(`='/ui/connections/one'`)
	b.shot("phone")
	if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("%d wide", wide)
	}
	for _, f := range accessible(t, b) {
		t.Errorf("%s: %s: %+v", f.ID, f.Help, f.Nodes)
	}
	b.click(`#palette [data-palette-close]`)
	b.until(`!document.querySelector("dialog[open]")`)
	b.clean("the palette")
}
