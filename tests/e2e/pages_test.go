//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// ended starts a run and waits for its end.
func ended(t *testing.T, c *served.Client, connection string) store.RunID {
	t.Helper()
	id := start(t, c, connection)
	if _, err := c.Wait(soon(t), id, served.Over); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestSignedOut: what was typed survives the end of a session. The page continues after
// a login in another tab, and comes back filled in after a login in this one. Nothing
// secret is kept.
func TestSignedOut(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit"})
	b := signIn(t, h, true)
	form := `form[hx-post="/ui/connections"]`
	out := func() {
		t.Helper()
		if _, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	link := func() string {
		t.Helper()
		l, err := h.Server.LoginLink(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return l.PlainURL
	}
	shown := `!document.querySelector("#signedout").hidden`
	b.open("/ui/connectors/steps/connect")
	b.do(chromedp.SendKeys(chromedp.CSS(form+` input[name=displayName]`), "My steps"))
	eval[any](b, `document.querySelector('[name="s.steps"]').value = '[{"do":"emit"}]'`)
	out()
	b.click(form + ` button.primary`)
	b.until(shown)
	b.shot("signed-out")
	if got := eval[string](b,
		`location.pathname + " " + document.querySelector("[name=displayName]").value`); got != "/ui/connectors/steps/connect My steps" {
		t.Errorf("the page is %s", got)
	}
	other := b.beside()
	other.do(chromedp.Navigate(link()))
	other.until(`location.pathname === "/ui/" && document.readyState === "complete"`)
	b.until(`document.querySelector("#signedout").hidden`)
	b.click(form + ` button.primary`)
	b.until(`location.pathname === "/ui/connections/steps-2/grant"`) // no id was asked for

	// A login in the same tab, with a schedule and a secret begun on one page.
	b.open("/ui/connections/one")
	schedule := `form[hx-post="/ui/connections/one/schedule"]`
	b.click(schedule + ` input[value=cron]`)
	b.do(chromedp.SendKeys(chromedp.CSS(schedule+` input[name=cron]`), "0 7 * * 1-5"))
	eval[any](b, `(() => { const f = document.querySelector('`+schedule+
		`'); for (const [type, auto] of [["password", ""], ["text", "one-time-code"], ["text", "off"]]) { const x = document.createElement("input"); x.name = "x-" + type + auto; x.type = type; x.autocomplete = auto; x.value = "hunter2"; f.append(x) } })()`)
	out()
	b.click(schedule + ` button.primary`)
	b.until(shown)
	b.click(`#signedout a`)
	b.until(`location.pathname === "/ui/login"`)
	if kept := eval[string](b, `JSON.stringify({...sessionStorage, ...localStorage})`); !strings.Contains(kept,
		"0 7 * * 1-5") || strings.Contains(kept, "hunter2") {
		t.Errorf("kept: %s", kept)
	}
	b.do(chromedp.Navigate(link()))
	b.until(`location.pathname === "/ui/connections/one" && document.querySelector('` + schedule +
		` input[name=cron]').value === "0 7 * * 1-5"`)
	if !eval[bool](b, `document.querySelector('`+schedule+` input[value=cron]').checked && document.querySelector('`+
		schedule+`').closest("details").open`) {
		t.Error("the form is not as it was")
	}
	b.shot("back")
	if left := eval[int](b, `Object.keys(sessionStorage).filter((x) => x.startsWith("sluice-")).length`); left != 0 {
		t.Errorf("%d things are kept after they were restored", left)
	}

	// A login leads to pages of ours and nowhere else.
	for next, want := range map[string]string{
		"/ui/runs?status=failed": "/ui/runs?status=failed", "https://evil.example/ui/": "/ui/", "//evil.example/ui/": "/ui/",
		`/\evil.example/ui/`: "/ui/", "/ui/..//evil.example": "/ui/", "/ui/%2e%2e/v1/runs": "/ui/",
		"javascript:alert(1)": "/ui/", "/v1/runs": "/ui/", "/ui/login?next=/ui/": "/ui/",
	} {
		at := eval[string](b, fmt.Sprintf(`"/ui/login?next=" + encodeURIComponent(%q)`, next))
		b.do(chromedp.Navigate(b.base + at))
		b.until(fmt.Sprintf(
			`document.readyState === "complete" && location.origin === %q && location.pathname + location.search === %q`, b.base,
			want))
	}
	b.clean("pages without a session")
}

// TestFailuresStay: an error stays where the attempt was made until the next attempt.
func TestFailuresStay(t *testing.T) {
	h, _ := open(t, tempDir(t))
	b := signIn(t, h, false)
	b.open("/ui/connectors")
	b.sees("No connector yet")
	bad := filepath.Join(tempDir(t), "bad.wasm")
	if err := os.WriteFile(bad, []byte("\x00asm\x01\x00\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.SetUploadFiles(chromedp.CSS(`input[name=module]`), []string{bad}))
	b.click(`#install button.primary`)
	b.until(`Array.from(document.querySelectorAll("#install .wrong")).some((x) => x.textContent && x.checkVisibility())`)
	b.shot("refused")

	// A connector that was inspected is refused at installation, because it is installed
	// by then.
	wasm, err := build.Connector("tests/e2e/guest")
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(tempDir(t), "steps.wasm")
	if err := os.WriteFile(module, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.SetUploadFiles(chromedp.CSS(`input[name=module]`), []string{module}))
	b.click(`#install button.primary`)
	b.sees("What this is")
	b.until(`!Array.from(document.querySelectorAll("#install .wrong")).some((x) => x.textContent)`)
	eval[any](b, `document.querySelector("[name=expectedDigest]").value = "sha256:" + "0".repeat(64)`)
	b.click(`#inspection button.primary`)
	b.until(`Array.from(document.querySelectorAll("#install .wrong")).some((x) => x.textContent && x.checkVisibility())`)
	b.shot("not-installed")
	// A button without a form reports its error in a line that stays until it is
	// dismissed.
	eval[any](b, `(() => { const x = document.createElement("button"); x.id = "lone"; x.setAttribute("hx-post", "/ui/runs/run_none/pause"); x.setAttribute("hx-swap", "none"); document.querySelector("main").append(x); htmx.process(x) })()`)
	b.click("#lone")
	b.until(`document.querySelector("#said .bad button") !== null`)
	b.click("#said .bad button")
	b.until(`document.querySelector("#said .bad") === null`)
	b.clean("failures")
}

// TestPagesLive: open lists show what happens, also a history that began after they
// were opened, with the runs that failed.
func TestPagesLive(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit", "n": 12})
	connect(t, h.Client, "two", step{"do": "emit", "n": 3}, step{"do": "fail", "text": "The service said no"})
	b := signIn(t, h, false)
	b.open("/ui/runs?status=failed")
	b.sees("No runs like this")
	history := b.beside()
	history.open("/ui/connections/two")
	ended(t, h.Client, "two")
	b.until(`document.querySelectorAll("#runs tbody tr").length === 1`)
	ended(t, h.Client, "one")
	ended(t, h.Client, "two")
	b.until(`document.querySelectorAll("#runs tbody tr").length === 2`)
	history.until(`document.querySelector(".chart canvas") !== null && document.querySelector(".chart").dataset.failures === "2"`)
	// Both bars are drawn whole: no pixel of their colour touches the edges of the plot.
	history.shot("history")
	b.shot("runs")
	b.clean("live lists")
	history.clean("live history")
}

// TestFoldedLines: lines of one kind, such as stored batches, fold into one that opens;
// none is lost.
func TestFoldedLines(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit", "n": 5000}, step{"do": "otp", "text": "Code?"},
		step{"do": "emit", "n": 2000}, step{"do": "stamp", "n": 5, "ms": 100})
	id := start(t, h.Client, "one")
	s, err := h.Wait(soon(t), id, served.Asks)
	if err != nil {
		t.Fatal(err)
	}
	b := signIn(t, h, false)
	b.open("/ui/runs/" + string(id))
	folded := func(n int) string {
		return fmt.Sprintf(
			`document.querySelectorAll("#events > .fold").length === %d && document.querySelector("#events").innerText.includes("000 records in ")`, n)
	}
	b.until(folded(1))
	b.shot("folded")
	if err := h.Answer(t.Context(), s, code); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Wait(soon(t), id, served.Over); err != nil {
		t.Fatal(err)
	}
	b.until(folded(3)) // they came while the page was open
	said := `document.querySelector("#events > .fold[data-fold^='output.chunk']")`
	if n := eval[string](b, said+`.dataset.times`); n != eval[string](b,
		`String(`+said+`.querySelectorAll("li[data-seq]").length)`) ||
		!strings.Contains(eval[string](b, said+`.querySelector("summary .what").textContent`), "Message × "+n) {
		t.Errorf("%s messages are not what is folded", n)
	}
	b.shot("live")
	sum := `Array.from(document.querySelectorAll("#events li:not(.fold)[data-records]")).reduce((n, x) => n + Number(x.dataset.records), 0)`
	if got := eval[int](b, sum); got != 7000 {
		t.Errorf("the lines tell of %d records", got)
	}
	order := `(() => { const s = Array.from(document.querySelectorAll("#events li[data-seq]")).map((x) => Number(x.dataset.seq)); return s.every((x, i) => i === 0 || x === s[i - 1] - 1) })()`
	if !eval[bool](b, order) {
		t.Error("lines are out of order, or missing")
	}
	eval[any](b, `document.querySelector("#events > .fold > details > summary").click()`)
	b.until(`document.querySelector("#events > .fold li").checkVisibility()`)
	b.shot("opened")
	b.clean("folded lines")
}

// small returns the visible controls of a page that are less than 44 px high or wide;
// links within a sentence count as text, and what the bars of a plot lead to is in a list
// or a form as well.
const small = `Array.from(document.querySelectorAll("a, button, input, select, textarea, summary, label.check")).filter((x) => {
  if (!x.checkVisibility() || x.closest("label.check") && x.tagName !== "LABEL" || x.closest(".sr, .skip, svg") || x.type === "hidden") return false;
  const r = x.getBoundingClientRect();
  if (r.width <= 2 || r.height <= 2) return false; // out of sight
  if (x.tagName === "A" && !x.matches(".button") && x.closest("p, .empty")) return false;
  return r.height < 43.5 || r.width < 43.5 && x.tagName !== "A";
}).map((x) => x.tagName + " " + (x.innerText || x.name || "").slice(0, 30) + " " + Math.round(x.getBoundingClientRect().width) + "x" + Math.round(x.getBoundingClientRect().height))`

// TestTouch: on a phone every control is large enough for a finger, no page is wider
// than the screen, and a code is asked for with digits and offered from a message.
func TestTouch(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit", "n": 3}, step{"do": "otp", "text": "Code?"})
	connect(t, h.Client, "two", step{"do": "emit", "n": 3})
	asking := start(t, h.Client, "one")
	if _, err := h.Wait(soon(t), asking, served.Asks); err != nil {
		t.Fatal(err)
	}
	over := ended(t, h.Client, "two")
	b := signIn(t, h, false)
	b.phone()
	for i, path := range []string{"/ui/", "/ui/inbox", "/ui/runs", "/ui/runs/" + string(asking),
		"/ui/runs/" + string(over), "/ui/connectors/steps/connect", "/ui/connections/one",
		"/ui/connections/one/grant", "/ui/data", "/ui/data/sql?sql=SELECT+1", "/ui/data/destinations",
		"/ui/records?connection=two&stream=items", "/ui/record?connection=two&stream=items&key=0-000000001", "/ui/connectors",
		"/ui/connectors/steps", "/ui/schedules", "/ui/keys", "/ui/audit", "/ui/settings", "/ui/nope"} {
		b.media([]string{"light", "dark"}[i%2])
		b.open(path)
		eval[any](b, `document.querySelectorAll("main details").forEach((x) => { x.open = true })`)
		if found := eval[[]string](b, small); len(found) > 0 {
			t.Errorf("%s: %q", path, found)
		}
		if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 390 {
			t.Errorf("%s is %d wide", path, wide)
		}
		b.shot(strings.Trim(strings.NewReplacer("/", "-", "?", "-", "&", "-", "=", "-").Replace(path), "-"))
	}
	b.open("/ui/inbox")
	field := `document.querySelector("input[name='f.code']")`
	if got := eval[string](b,
		`(() => { const f = `+field+
			`; return [f.type, f.inputMode, f.autocomplete].join(" ") })()`); got != "text numeric one-time-code" {
		t.Errorf("the field of a code is %s", got)
	}
	b.click(`[data-letters]`)
	if got := eval[string](b, field+`.inputMode`); got != "text" {
		t.Errorf("a code with letters: %s", got)
	}
	b.clean("a phone")
}
