//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// loginPage is a page that a connector cannot pass by itself: a box that only a trusted
// click ticks, a password, a native list, a file, and a question before the page is
// left. Its controls have fixed places, so that a test finds them in a picture.
const loginPage = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Bank of the test</title>
<style>
body { margin: 0; font: 20px sans-serif; background: #f4f6fb; color: #1d2433 }
header { position: absolute; inset: 0 0 auto 0; height: 56px; background: #24407a; color: #fff; line-height: 56px; padding: 0 40px; font-weight: bold }
.row { position: absolute; left: 40px; width: min(420px, calc(100vw - 80px)) }
label { display: block; font-size: 15px } input, select, button { box-sizing: border-box; width: 100%; height: 44px; font: inherit; border: 1px solid #8894ad; border-radius: 6px; padding: 0 10px; background: #fff; color: inherit }
button { background: #24407a; color: #fff } #human { border: 1px solid #8894ad; border-radius: 6px; background: #fff; height: 60px; line-height: 60px; padding: 0 16px; cursor: pointer }
</style><header>Bank of the test</header>
<div class="row" style="top:80px"><label for="user">User name</label><input id="user" autocomplete="off"></div>
<div class="row" style="top:160px"><label for="password">Password</label><input id="password" type="password"></div>
<div class="row" style="top:240px"><label for="branch">Branch</label><select id="branch"><option>Choose…<option>Basel<option>Zürich</select></div>
<div class="row" style="top:320px"><label for="letter">Letter of the bank</label><input id="letter" type="file"></div>
<div class="row" style="top:400px"><div id="human" role="checkbox" aria-checked="false" tabindex="0" aria-label="I am a human">☐ I am a human</div></div>
<div class="row" style="top:480px"><button id="go">Sign in</button></div>
<p class="row" id="state" style="top:540px"></p>
<script>
const $ = (id) => document.getElementById(id);
const tick = (e) => { if (e.isTrusted) { $("human").setAttribute("aria-checked", "true"); $("human").textContent = "☑ I am a human" } };
$("human").onclick = tick;
$("human").onkeydown = (e) => { if (e.key === " ") tick(e) };
$("go").onclick = async () => {
  if ($("human").getAttribute("aria-checked") !== "true") { $("state").textContent = "Are you a human?"; return }
  if (!confirm("Trust this browser from now on?")) return;
  const answer = await fetch("/login", { method: "POST", body: JSON.stringify({ user: $("user").value, password: $("password").value, branch: $("branch").value, letter: $("letter").files[0]?.name ?? "" }) });
  $("state").textContent = await answer.text();
};
</script>`

// A bank is the site of loginPage, and what was posted to it.
type bank struct {
	*httptest.Server
	mu     sync.Mutex
	logins []map[string]string
}

func newBank(t *testing.T) *bank {
	b := &bank{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/login":
			if r.Method == http.MethodPost {
				var m map[string]string
				_ = json.NewDecoder(r.Body).Decode(&m)
				b.mu.Lock()
				b.logins = append(b.logins, m)
				b.mu.Unlock()
				fmt.Fprintf(w, "Signed in as %s, %s", m["user"], m["branch"])
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(loginPage))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *bank) told() []map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]map[string]string(nil), b.logins...)
}

// passable lets browsers of other users pass through a directory.
func passable(t *testing.T) string {
	t.Helper()
	dir := tempDir(t)
	if err := os.Chmod(dir, 0o711); err != nil { // #nosec G302 -- that is its purpose
		t.Fatal(err)
	}
	return dir
}

// openHelped opens a service with the connector that needs its owner's help.
func openHelped(t *testing.T, change ...func(*daemon.Options)) (*served.Host, *bank, func()) {
	t.Helper()
	site := newBank(t)
	h, closeIt := open(t, passable(t),
		append(change, func(o *daemon.Options) { o.Host.Browser.ProbeInterval = 200 * time.Millisecond })...)
	install(t, h.Client, "tests/e2e/helped")
	return h, site, closeIt
}

// helped makes a connection and starts a run that asks for help in a given way.
func helped(t *testing.T, h *served.Host, site *bank, asks string) store.RunID {
	t.Helper()
	settings, _ := json.Marshal(map[string]string{"site": site.URL, "asks": asks})
	at, yes := "/v1/connections/"+asks, true
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/v1/connections", host.NewConnection{ConnectorName: "helped", ConnectionID: asks, Settings: settings}},
		{"PUT", at + "/bindings",
			host.Bindings{Interactive: &yes, Browser: &host.BrowserBinding{},
				Network: &host.NetworkBinding{Hosts: []string{site.URL}}}},
		{"POST", at + "/grants", map[string]any{"scope": nil, "accessMode": "continuous"}},
	} {
		if _, err := h.Do(t.Context(), c.method, c.path, c.body, nil); err != nil {
			t.Fatalf("%s: %v", c.path, err)
		}
	}
	id := start(t, h.Client, asks)
	if asks == "assistance" { // which the snapshot has no question for
		return id
	}
	if _, err := h.Wait(soon(t), id, served.Asks); err != nil {
		t.Fatal(err)
	}
	return id
}

// over waits for the end of a run and returns what its connector saw.
func over(t *testing.T, h *served.Host, id store.RunID, connection string) map[string]string {
	t.Helper()
	s, err := h.Wait(soon(t), id, served.Over)
	if err != nil || s.Status != timeline.Completed {
		t.Fatalf("the run ended as %s: %v", s.Status, err)
	}
	var page struct {
		Data []struct{ Data struct{ ID, Text string } }
	}
	if _, err := h.Do(t.Context(), "GET", "/v1/connections/"+connection+"/streams/seen/records?limit=100", nil,
		&page); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, r := range page.Data {
		seen[r.Data.ID] = r.Data.Text
	}
	return seen
}

// said waits until the live region of the view announces a text.
func (b *tab) said(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector("[data-view-said]").textContent.includes(%q)`, text))
}

// at clicks a point of the page that the view shows, given the page's width.
func (b *tab) at(x, y, width float64) {
	b.t.Helper()
	p := eval[[]float64](b, fmt.Sprintf(
		`(() => { const c = document.querySelector("[data-view] canvas"); c.scrollIntoView({block: "center"}); const r = c.getBoundingClientRect(); return [r.left, r.top, r.width / %v] })()`, width))
	b.do(chromedp.MouseClickXY(p[0]+x*p[2], p[1]+y*p[2]))
}

// pixel returns the brightness of the picture at a point of the page, 0 to 255.
func pixel(x, y, width int) string {
	return fmt.Sprintf(
		`(() => { const c = document.querySelector("[data-view] canvas"), k = c.width / %d; const d = c.getContext("2d").getImageData(%d * k, %d * k, 1, 1).data; return (d[0] + d[1] + d[2]) / 3 })()`, width, x, y)
}

// types presses and releases keys, as a keyboard does: what the page takes is typed
// nowhere else.
func (b *tab) types(text string) {
	b.t.Helper()
	for _, r := range text {
		for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown,
			input.DispatchKeyEventTypeKeyUp} {
			p := input.DispatchKeyEventParams{Type: kind, Key: string(r)}
			if kind == input.DispatchKeyEventTypeKeyDown {
				p.Text = string(r)
			}
			if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, p); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

// TestHelp: in the live view the owner does what a connector must not do: by pointer
// and keys, with a list, a file and a dialog. The connector sees the page as it is
// afterwards, and nothing of what was typed.
func TestHelp(t *testing.T) {
	h, site, _ := openHelped(t)
	id := helped(t, h, site, "manual_action")
	b := signIn(t, h, false)
	b.open("/ui/inbox")
	b.sees("The run waits for you to finish a step in the browser")
	b.shot("inbox")
	b.open("/ui/runs/" + string(id))
	b.click(`[data-view-open]`)
	b.said("You are in control")
	b.until(pixel(640, 28, 1280) + " < 120 && " + pixel(640, 400, 1280) + " > 230") // the bank's head and wall
	b.at(200, 125, 1280)
	b.types("ada")
	b.at(200, 205, 1280)
	b.types("correct horse")
	b.at(200, 285, 1280)
	b.until(`!document.querySelector("[data-view-choice]").hidden`)
	b.shot("list")
	eval[any](b, `document.querySelector("[data-view-choice] select").value = "2"`)
	b.click(`[data-view-choice] .primary`)
	b.at(200, 365, 1280)
	b.until(`!document.querySelector("[data-view-file]").hidden`)
	letter := filepath.Join(tempDir(t), "letter.pdf")
	if err := os.WriteFile(letter, []byte("%PDF-1.7"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.SetUploadFiles(chromedp.CSS(`[data-view-file] input`), []string{letter}))
	b.shot("file")
	b.click(`[data-view-file] .primary`)
	b.said("The page has the file")
	b.at(200, 445, 1280)
	b.at(200, 518, 1280)
	b.sees("Trust this browser from now on?")
	b.shot("dialog")
	b.part("[data-view]", "live-view")
	for _, f := range accessible(t, b) {
		t.Errorf("%s (%s): %s", f.ID, f.Impact, f.Help)
	}
	b.click(`[data-view-dialog] .primary`)
	b.until(`document.querySelector("[data-view-dialog]").hidden`)
	for end := time.Now().Add(2 * time.Minute); len(site.told()) == 0 &&
		time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
	}
	want := map[string]string{"user": "ada", "password": "correct horse", "branch": "Zürich", "letter": "letter.pdf"}
	if got := site.told(); len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
		t.Fatalf("the bank was told %v", got)
	}
	b.shot("signed-in")
	b.click(`[data-view-do="release"]`)
	b.said("You gave control back. The question of the connector is still open.")
	b.click(`#asks [data-done]`)
	seen := over(t, h, id, "manual_action")
	if seen["asked"] != "ok" || seen["state"] != "Signed in as ada, Zürich" || seen["read"] != "ok" ||
		seen["stale"] != "STALE_REFERENCE" {
		t.Errorf("the connector saw %v", seen)
	}
	b.sees("This step is over")
	b.shot("over")
	b.clean("the live view of a bank")
	var log json.RawMessage
	if _, err := h.Do(t.Context(), "GET", "/v1/runs/"+string(id)+"/events?limit=1000", nil, &log, "Accept",
		"application/json"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), "correct horse") {
		t.Error("the password is in the timeline")
	}
}

// TestHelpByList: on a phone, without a pointer and without the picture, the owner uses
// the list of elements and a keyboard; the connection drops meanwhile. Another window
// watches and sees no password; the connector keeps looking and sees nothing before
// control is given back.
func TestHelpByList(t *testing.T) {
	h, site, _ := openHelped(t)
	id := helped(t, h, site, "assistance")
	b := signIn(t, h, false)
	for _, err := range []error{
		call(b, emulation.SetDeviceMetricsOverride,
			emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 2, Mobile: true}),
		call(b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b.media("dark")
	b.open("/ui/runs/" + string(id))
	b.sees("Finish the step in the browser; the connector will notice")
	eval[any](b, `(() => { const W = WebSocket; window.WebSocket = class extends W { constructor(u) { super(u); window.sockets = (window.sockets ?? []).concat(this) } } })()`)
	b.click(`[data-view-open]`)
	b.said("You are in control")
	b.until(`document.querySelector("[data-view] canvas").width >= 390 && document.documentElement.scrollWidth <= 390`)
	watcher := looking(t, h, string(id), "view")
	covered := func(p []byte) bool { x := shadeOf(t, p, 200, 205, 390); return x > 100 && x < 160 }
	watcher.until(covered)
	// that something waits is said over the picture for a moment
	b.until(`document.querySelector("#said").textContent === ""`)
	b.part("[data-view]", "live-view-phone")

	// The list is read, typed into and clicked with Enter and Space alone.
	press := func(selector, key string) {
		t.Helper()
		b.until(fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
		eval[any](b, fmt.Sprintf(`document.querySelector(%q).focus()`, selector))
		b.do(chromedp.KeyEvent(key))
	}
	press(`[data-view-elements] summary`, kb.Enter)
	b.sees("Password")
	fill := func(name, text string) {
		t.Helper()
		eval[any](b, fmt.Sprintf(`document.querySelector('[data-view-list] input[aria-label^="Text for %s"]').focus()`, name))
		b.types(text)
		b.shot("filled-" + strings.ToLower(strings.Fields(name)[0]))
		press(`[data-view-list] [aria-label^="Type: `+name+`"]`, kb.Enter)
	}
	fill("User name", "ada")
	fill("Password", "correct horse")
	press(`[data-view-list] [aria-label^="Choose: Branch"]`, kb.Enter)
	b.until(`document.activeElement.matches("[data-view-choice] select")`)
	eval[any](b, `document.activeElement.value = "1"`)
	press(`[data-view-choice] .primary`, kb.Enter)

	// The connection drops, and comes back by itself with the state that it had.
	eval[any](b, `sockets[0].close()`)
	b.until(`sockets.length === 2 && sockets[1].readyState === 1`)
	b.said("elements.") // read anew
	b.until(`document.querySelector("[data-view-lease]").textContent === "You are in control"`)
	press(`[data-view-list] [aria-label^="Click: I am a human"]`, kb.Enter)
	press(`[data-view-list] [aria-label^="Click: Sign in"]`, kb.Enter)
	b.sees("Trust this browser from now on?")
	b.until(`document.activeElement.matches("[data-view-dialog] .primary")`)
	b.do(chromedp.KeyEvent(kb.Enter))
	wait := time.Now().Add(2 * time.Minute)
	for ; len(site.told()) == 0 && time.Now().Before(wait); time.Sleep(20 * time.Millisecond) {
	}
	if got := site.told(); len(got) != 1 || got[0]["user"] != "ada" || got[0]["password"] != "correct horse" ||
		got[0]["branch"] != "Basel" {
		t.Fatalf("the bank was told %v", got)
	}
	b.shot("phone")
	for _, f := range accessible(t, b) {
		t.Errorf("%s (%s): %s", f.ID, f.Impact, f.Help)
	}
	watcher.until(func(p []byte) bool { return covered(p) || shadeOf(t, p, 200, 205, 390) > 230 })
	if shadeOf(t, watcher.last, 200, 205, 390) > 230 {
		t.Error("a watcher saw the password field")
	}
	press(`[data-view-do="release"]`, kb.Enter)
	seen := over(t, h, id, "assistance")
	if seen["password"] != "" || seen["refused"] != "owner_in_control" || seen["state"] != "Signed in as ada, Basel" ||
		seen["stale"] != "STALE_REFERENCE" {
		t.Errorf("the connector saw %v", seen)
	}
	b.clean("the live view without a pointer")
}

// killBrowsers kills the browsers of a host, as a crash does, including one that waits
// for its next run.
func killBrowsers(t *testing.T, dir string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, path := range all {
		raw, _ := os.ReadFile(path) // some are gone by now
		if line := string(raw); strings.Contains(line, "user-data-dir="+dir) && !strings.Contains(line, "--type=") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			if syscall.Kill(pid, syscall.SIGKILL) == nil { // or it ended by itself
				killed++
			}
		}
	}
	if killed == 0 {
		t.Fatal("the run has no browser")
	}
}

// TestHelpLost: the browser dies while its owner looks at it, and while a code is asked
// for. The page says what happened and offers nothing that is gone; an answer comes too
// late; the run continues.
func TestHelpLost(t *testing.T) {
	h, site, stop := openHelped(t)
	b := signIn(t, h, false)
	for _, kind := range []string{"manual_action", "otp"} {
		id := helped(t, h, site, kind)
		asked, err := h.Snapshot(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		b.open("/ui/runs/" + string(id))
		b.click(`[data-view-open]`)
		b.said("You are in control")
		b.shot(kind)
		killBrowsers(t, h.Dir)
		b.said("The browser was lost. Nothing was submitted.")
		b.shot(kind + "-lost")
		b.until(`document.querySelector("[data-view-open]") === null && document.querySelector("#asks form") === null`)
		seen := over(t, h, id, kind)
		if !strings.Contains(seen["asked"], "cancelled") || seen["read"] != "surface_lost" || seen["state"] != "" {
			t.Errorf("%s: the connector saw %v", kind, seen)
		}
		var late *served.Failure
		if err := h.Answer(t.Context(), asked, map[string]string{"code": "123456"}); !errors.As(err, &late) ||
			late.Status != 409 {
			t.Errorf("%s: a late answer: %v", kind, err)
		}
	}
	// A surface that was never opened is not offered, and the page says so.
	id := helped(t, h, site, "nowhere")
	b.open("/ui/runs/" + string(id))
	b.sees("none can be shown here")
	b.shot("nowhere")
	if eval[bool](b, `document.querySelector("[data-view-open],[data-done]") !== null`) {
		t.Error("a view is offered of a run that has no browser")
	}
	b.click(`#asks form button:not(.quiet)`)
	if seen := over(t, h, id, "nowhere"); seen["asked"] != "ok" {
		t.Errorf("done outside: %v", seen)
	}
	b.clean("the loss of a browser")

	// The host stops while a viewer is connected.
	if _, err := h.Do(t.Context(), "DELETE", "/v1/connections/manual_action", nil, nil); err != nil {
		t.Fatal(err)
	}
	id = helped(t, h, site, "manual_action")
	b.open("/ui/runs/" + string(id))
	b.click(`[data-view-open]`)
	b.said("You are in control")
	stop()
	b.until(`!document.querySelector("[data-view-gone]").hidden`)
	b.said("Sluice is stopping")
	b.shot("stopped")
}
