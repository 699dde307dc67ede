//go:build unix

package browsing_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/tests/browsing"
)

// ruled are the pages of rules. A page reports what it does in #log.
var ruled = map[string]string{
	"/": `<p id=log></p><button id=go onclick="log('go')">Go</button>`,
	"/events": `<button id=go style="margin:60px">Go</button><p id=log></p><script>
		for (const t of ["pointermove","mousemove","pointerdown","mousedown","pointerup","mouseup","click"]) $("go").addEventListener(t, e => log(t + (e.isTrusted ? "" : "!")))</script>`,
	"/twin": `<div id=box><button id=go onclick="log('old')">Go</button></div><p id=log></p><script>
		const anew = () => { $("box").innerHTML = "<button id=go>Go</button>"; $("go").onclick = () => log("new") }</script><button onclick="anew()">Anew</button>`,
	"/liar": `<p id=text>aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!</p><p id=log></p><script>
		RegExp.prototype.test = () => true; RegExp.prototype.exec = () => ["yes"]; String.prototype.match = () => ["yes"]; String.prototype.includes = () => true</script>`,
	"/mute":  `<button>Go</button><button style="position:absolute;left:200px;top:100px">Under</button><div style="position:absolute;left:190px;top:90px;width:200px;height:60px;background:#ccc" onclick="1">over</div>`,
	"/track": `<label>Volume <input type=range min=0 max=100 step=40 value=0></label><button>Go</button>`,
	"/secret": `<form><label>User <input id=user autocomplete=username></label><label>Password <input id=pw type=password></label></form>
		<p id=log></p><button id=say onclick="log($('pw').value)">Say</button><p id=cookie></p>`,
	"/long": `<p id=text></p><table id=rows></table><div id=links></div><p id=log></p><script>
		$("text").textContent = "x".repeat(100000);
		$("rows").innerHTML = "<tr><th>n</th></tr>" + Array.from({ length: 6000 }, (_, i) => "<tr><td>" + i + "</td></tr>").join("");
		$("links").innerHTML = Array.from({ length: 5500 }, (_, i) => "<a href='/l" + i + "'>.</a>").join("")</script>`,
	"/many":  `<script>document.write(Array.from({ length: 2300 }, (_, i) => "<button>B" + i + "</button>").join(""))</script>`,
	"/opens": `<button onclick="window.open('/', '_blank')">Open</button>`,
	"/noise": `<canvas id=c width=2400 height=9000></canvas><script>
		const x = $("c").getContext("2d"), d = x.createImageData(2400, 9000), b = new Uint32Array(d.data.buffer);
		for (let i = 0, s = 1; i < b.length; i++) { s ^= s << 13; s ^= s >>> 17; s ^= s << 5; b[i] = s | 0xff000000 } x.putImageData(d, 0, 0)</script>`,
	"/tall": `<div style="height:30000px;width:2000px">tall</div>`,
}

const ruledPage = `<!doctype html><title>Rules</title><meta charset=utf-8><script>const $ = id => document.getElementById(id), log = t => { $("log").append(t + " ") }</script>%s`

func ruleServer(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: "cookie-value-of-one", Path: "/", HttpOnly: true})
		w.Header().Set("Content-Type", "text/html")
		body := ruled[r.URL.Path]
		if r.URL.Path == "/cookie" {
			body = fmt.Sprintf("<p id=log>%d cookies</p>", len(r.Cookies()))
		}
		_, _ = fmt.Fprintf(w, ruledPage, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A rules is a session that keeps all replies, so that they can be checked at the end.
type rules struct {
	*browsing.Session
	t    *testing.T
	site string

	mu  sync.Mutex // guards all
	all bytes.Buffer
}

func (r *rules) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Write(p)
}

func (r *rules) call(m browsing.M) browsing.Reply {
	got := r.Call(m)
	_, _ = r.Write(append(bytes.Clone(got.Raw), '\n'))
	return got
}

// on loads a page anew, without any state.
func (r *rules) on(t *testing.T, path string) {
	t.Helper()
	if got := r.call(browsing.M{"verb": "navigate", "url": r.site + path, "until": "load"}); !got.Success {
		t.Fatalf("%s: %s", path, got.Raw)
	}
}

// log returns what the page reported.
func (r *rules) log(t *testing.T) string {
	t.Helper()
	var text string
	got := r.call(browsing.M{"verb": "extract",
		"items": []browsing.M{{"name": "log", "take": "text", "target": browsing.Selector("css", "#log")}}})
	decode(t, got.Items["log"], &text)
	return strings.TrimSpace(text)
}

// element returns the id that a snapshot gives to the button with a name.
func (r *rules) element(t *testing.T, name string) string {
	t.Helper()
	var reply struct {
		Elements []struct {
			ID    string `json:"element_id"`
			Role  string
			Label string
			Text  string
		}
	}
	decode(t, r.call(browsing.M{"verb": "snapshot"}).Raw, &reply)
	for _, e := range reply.Elements {
		if e.Role == "button" && (e.Label == name || e.Text == name) {
			return e.ID
		}
	}
	t.Fatalf("no button %s in %+v", name, reply.Elements)
	return ""
}

// stages are the steps of an action's trace, as stage and result.
func stages(t *testing.T, raw []byte) string {
	t.Helper()
	var reply struct {
		Trace struct {
			Steps []struct{ Stage, Result string }
		}
	}
	decode(t, raw, &reply)
	var out []string
	for _, s := range reply.Trace.Steps {
		out = append(out, s.Stage+"="+s.Result)
	}
	return strings.Join(out, " ")
}

func button(name string) browsing.M { return browsing.Selector("role", "button", "name", name) }

// TestRules checks the rules of docs/spec/browser.md, "The surface" and "Calling the browser",
// in one browser.
func TestRules(t *testing.T) {
	site, data := ruleServer(t), browsing.Dir(t)
	r := &rules{t: t, site: site}
	h := browsing.Host(t, browser.Options{Data: data, ActionsPerMinute: 6000, ProbeInterval: 200 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(r, nil))})
	r.Session = browsing.Begin(t, h, browser.SessionOptions{Trace: true}, site)
	const handle, password = "sluice-sealed-v1-abcdefghijklmnopqrstuvwxyz", "correct horse battery"
	r.Seal("password", handle, password, [][]byte{[]byte(password)},
		[]abi.Destination{{Origin: site, Placements: []string{"browser_fill"}}})
	if got := r.call(browsing.M{"verb": "open", "url": site + "/"}); got.Errno != abi.OK {
		t.Fatalf("%s", got.Raw)
	}

	t.Run("refused calls touch no page", func(t *testing.T) {
		for text, m := range map[string]browsing.M{
			"no verb of ours":     {"verb": "evaluate", "script": "log('evil')"},
			"a number as text":    {"verb": "scroll", "direction": "down", "amount": "0.7"},
			"no condition":        {"verb": "wait", "for": "luck"},
			"an effect of theirs": {"verb": "click", "target": button("Go"), "action_type": "local_state"},
			"an open browser":     {"verb": "open"},
		} {
			if got := r.call(m); got.Errno == abi.OK || got.Refusal == "" || got.ID != "" {
				t.Errorf("%s: %s", text, got.Raw)
			}
		}
		if got := r.log(t); got != "" {
			t.Errorf("the page saw %q", got)
		}
		// What fails on the page is a reply that says so.
		if got := r.call(browsing.M{"verb": "click", "target": button("None"), "actionable_timeout_ms": 0,
			"deadline_ms": 2000}); got.Errno != abi.OK || got.Success || got.Dispatched || got.Code != "ELEMENT_NOT_FOUND" ||
			got.State != "failed" {
			t.Errorf("%s", got.Raw)
		}
	})

	t.Run("no script", func(t *testing.T) {
		r.on(t, "/")
		const evil = "document.getElementById('log').append('evil')"
		for _, verb := range []string{"navigate", "click", "type", "press", "select", "check", "adjust", "scroll", "hover",
			"upload", "wait", "expect", "extract", "snapshot", "screenshot", "mark"} {
			r.call(browsing.M{"verb": verb, "url": "javascript:" + evil, "script": evil, "expression": evil,
				"function": "()=>" + evil, "target": browsing.Selector("css", "#log"), "deadline_ms": 500,
				"actionable_timeout_ms": 0, "expect": browsing.M{"kind": "script", "script": evil},
				"for": "script", "timeout_ms": 500})
		}
		if got := r.call(browsing.M{"verb": "navigate", "url": "javascript:" + evil}); got.Detail != "scheme_denied" ||
			got.Dispatched {
			t.Errorf("%s", got.Raw)
		}
		if got := r.call(browsing.M{"verb": "expect", "timeout_ms": 500,
			"expect": browsing.M{"kind": "exists",
				"target": browsing.Selector("css", `#log),*{background:url("javascript:`+evil+`")}`)}}); got.Errno == abi.OK &&
			got.Success {
			t.Errorf("%s", got.Raw)
		}
		if got := r.log(t); got != "" {
			t.Errorf("the page saw %q", got)
		}
	})

	t.Run("a click is move, press, release", func(t *testing.T) {
		r.on(t, "/events")
		if got := r.call(browsing.M{"verb": "click", "target": button("Go"),
			"expect": browsing.M{"kind": "text", "target": browsing.Selector("css", "#log"), "op": "contains",
				"value": "click"}}); !got.Success {
			t.Errorf("%s", got.Raw)
		}
		if got := r.log(t); got != "pointermove mousemove pointerdown mousedown pointerup mouseup click" {
			t.Errorf("the page saw %q", got)
		}
	})

	t.Run("references", func(t *testing.T) {
		r.on(t, "/twin")
		var fingerprints struct {
			Before *string `json:"fingerprint_before"`
			After  *string `json:"fingerprint_after"`
		}
		got := r.call(browsing.M{"verb": "click", "target": browsing.M{"element_id": "el_none"}})
		decode(t, got.Raw, &fingerprints)
		if got.Code != "STALE_REFERENCE" || got.Dispatched || fingerprints.Before != nil || fingerprints.After != nil {
			t.Errorf("%s", got.Raw)
		}
		id := r.element(t, "Go")
		r.call(browsing.M{"verb": "click", "target": button("Anew")})
		expect := browsing.M{"kind": "text", "target": browsing.Selector("css", "#log"), "op": "equals", "value": "new"}
		if got := r.call(browsing.M{"verb": "click", "target": browsing.M{"element_id": id},
			"expect": expect}); got.Code != "STALE_REFERENCE" || got.Dispatched {
			t.Errorf("another element was taken for it: %s", got.Raw)
		}
		if got := r.call(browsing.M{"verb": "click", "target": browsing.M{"element_id": id}, "rebind": true,
			"expect": expect}); !got.Success || got.Details["rebound"] != true {
			t.Errorf("%s", got.Raw)
		}
		if got := r.log(t); got != "new" {
			t.Errorf("the page saw %q", got)
		}
	})

	t.Run("matches is RE2 of the host", func(t *testing.T) {
		r.on(t, "/liar")
		expect := func(pattern string) browsing.Reply {
			return r.call(browsing.M{"verb": "expect", "timeout_ms": 500,
				"expect": browsing.M{"kind": "text", "target": browsing.Selector("css", "#text"),
					"op": "matches", "value": pattern}})
		}
		if got := expect("^(a+)+$"); got.Success {
			t.Errorf("the page decided: %s", got.Raw)
		}
		if got := expect(`^a+!$`); !got.Success {
			t.Errorf("%s", got.Raw)
		}
		if got := expect(`(a)\1`); got.Refusal != "invalid_request" {
			t.Errorf("%s", got.Raw)
		}
	})

	t.Run("a trace tells what failed", func(t *testing.T) {
		r.on(t, "/mute")
		quick := func(m browsing.M) browsing.M {
			m["actionable_timeout_ms"], m["deadline_ms"], m["recovery"] = 100, 4000, browsing.M{"max_recovery_attempts": 1}
			return m
		}
		shown := browsing.M{"kind": "visible", "target": browsing.Selector("css", "#never")}
		for _, c := range []struct {
			request browsing.M
			page    string
			want    string
			code    string
		}{
			{browsing.M{"verb": "click", "target": button("None")}, "",
				`^(resolve=\w+ )*resolve=failure (recover=retry (resolve=\w+ )*resolve=failure )*recover=failure$`,
				"ELEMENT_NOT_FOUND"},
			{browsing.M{"verb": "click", "target": button("Under")}, "",
				`^(resolve=\w+ )*resolve=failure (recover=retry (resolve=\w+ )*resolve=failure )*recover=failure$`,
				"ACTION_REJECTED"},
			{browsing.M{"verb": "navigate", "url": "http://127.0.0.1:1/"}, "",
				`resolve=success execute=failure.* recover=failure$`, ""},
			{browsing.M{"verb": "click", "target": button("Go"), "expect": shown}, "",
				`^resolve=success execute=success verify=.*stabilize=failure.* recover=failure$`, "VERIFICATION_FAILED"},
			{browsing.M{"verb": "adjust", "target": browsing.Selector("label", "Volume"), "value": 30, "tolerance": 0.5},
				"/track", `^resolve=success execute=success .*verify=.*recover=.*recover=failure$`, "CONTROL_CONVERGENCE_FAILED"},
		} {
			if c.page != "" {
				r.on(t, c.page)
			}
			got := r.call(quick(c.request))
			if steps := stages(t, got.Raw); !regexp.MustCompile(c.want).MatchString(steps) ||
				c.code != "" && got.Code != c.code {
				t.Errorf("%v: %s %s, want %s", c.request, got.Code, steps, c.want)
			}
		}
	})

	t.Run("limits", func(t *testing.T) { limits(t, r) })

	t.Run("one process for one profile", func(t *testing.T) {
		other := browsing.Begin(t, h, browser.SessionOptions{Connection: "two", Name: "two", Connector: "test"}, site)
		other.Must(browsing.M{"verb": "open", "url": site + "/cookie"})
		mine, theirs := processOf(t, filepath.Join(data, "profiles", "one")),
			processOf(t, filepath.Join(data, "profiles", "two"))
		if mine == theirs || mine == 0 || theirs == 0 {
			t.Errorf("processes %d and %d", mine, theirs)
		}
		if a, b := ownerOf(t, mine), ownerOf(t, theirs); os.Geteuid() == 0 && (a == b || a == 0 || b == 0) {
			t.Errorf("both run as %d and %d", a, b)
		}
		if a, b := proxyOf(t, mine), proxyOf(t, theirs); a == "" || os.Geteuid() != 0 && a == b {
			t.Errorf("proxies %q and %q", a, b)
		}
		if raw := other.Must(browsing.M{"verb": "extract",
			"items": []browsing.M{{"name": "n", "take": "text",
				"target": browsing.Selector("css", "#log")}}}).Raw; !bytes.Contains(raw, []byte(`"0 cookies"`)) {
			t.Errorf("a cookie of another connection: %s", raw)
		}
		r.on(t, "/cookie")
		if got := r.log(t); got != "1 cookies" {
			t.Errorf("its own: %s", got)
		}
		other.End()
	})

	t.Run("secrets", func(t *testing.T) { // for what is looked for below
		r.on(t, "/secret")
		if got := r.call(browsing.M{"verb": "fill", "target": browsing.Selector("css", "#pw"),
			"value": browsing.M{"sealed": handle}}); !got.Success {
			t.Fatalf("%s", got.Raw)
		}
		if got := r.call(browsing.M{"verb": "fill", "target": browsing.Selector("css", "#user"),
			"value": browsing.M{"plain": "typed-by-the-guest"}}); !got.Success {
			t.Errorf("%s", got.Raw)
		}
		r.call(browsing.M{"verb": "click", "target": button("Say")})
		if got := r.log(t); got != handle {
			t.Errorf("the guest reads %q", got)
		}
	})

	pid := processOf(t, filepath.Join(data, "profiles", "one"))
	proxy := proxyOf(t, pid)
	t.Run("a lost browser", func(t *testing.T) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		var lost []browsing.Event
		for end := time.Now().Add(2 * time.Minute); len(lost) == 0 &&
			time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			lost = r.Run.Events("lost")
		}
		if len(lost) != 1 {
			t.Fatalf("%v", lost)
		}
		code, _ := lost[0].Data["code"].(string)
		detail, _ := lost[0].Data["detail"].(string)
		if !slices.Contains([]string{"browser_surface_cdp_unreachable", "browser_surface_cdp_disconnected"}, code) ||
			len(detail) > 200 || detail == "" || regexp.MustCompile(`[0-9/]`).MatchString(detail) {
			t.Errorf("%s: %s", code, detail)
		}
		if got := r.call(browsing.M{"verb": "snapshot"}); got.Refusal != "surface_lost" {
			t.Errorf("%s", got.Raw)
		}
	})
	r.End()

	t.Run("nothing of the host's", func(t *testing.T) {
		r.mu.Lock()
		said := r.all.String()
		r.mu.Unlock()
		for _, e := range r.Run.Events("") {
			said += fmt.Sprintln(e)
		}
		never := []string{"devtools", "DevTools", "ws://", "targetId", "sessionId", "webSocketDebuggerUrl", "Runtime.",
			"Page.", "cookie-value-of-one", password, data, strings.TrimPrefix(proxy, "http://")}
		for _, secret := range never {
			if secret != "" && strings.Contains(said, secret) {
				i := strings.Index(said, secret)
				t.Errorf("%q is in %q", secret, said[max(0, i-100):min(len(said), i+100)])
			}
		}
		if m := regexp.MustCompile(`\b[0-9A-F]{32}\b`).FindString(said); m != "" {
			t.Errorf("%s may be the id of a target", m)
		}
		if regexp.MustCompile(`pid\W{1,3}` + strconv.Itoa(pid)).MatchString(said) {
			t.Error("the id of the process")
		}
		archive, err := zip.OpenReader(browser.TraceFile(data, "run_1")) // it is there, though the browser was lost
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		for _, f := range archive.File {
			from, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(from)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{password, "typed-by-the-guest", "cookie-value-of-one", data} {
				if bytes.Contains(text, []byte(secret)) {
					t.Errorf("%s has %q", f.Name, secret)
				}
			}
		}
	})
}

// limits checks the rows of the table in docs/spec/browser.md, "Limits".
func limits(t *testing.T, r *rules) {
	if got := r.call(browsing.M{"verb": "snapshot",
		"padding": strings.Repeat("x", 256<<10)}); got.Refusal != "invalid_request" {
		t.Errorf("a request of more than 256 KiB: %s", got.Raw)
	}
	r.on(t, "/long")
	for take, c := range map[string]struct {
		css  string
		most int
	}{"text": {"#text", 64 << 10}, "table": {"#rows", 5000}, "links": {"", 5000}} {
		item := browsing.M{"name": "x", "take": take}
		if c.css != "" {
			item["target"] = browsing.Selector("css", c.css)
		}
		got := r.call(browsing.M{"verb": "extract", "items": []browsing.M{item}})
		var reply struct{ Truncated bool }
		decode(t, got.Raw, &reply)
		size := 0
		switch take {
		case "text":
			var text string
			decode(t, got.Items["x"], &text)
			size = len(text)
		case "table":
			var table struct{ Rows [][]string }
			decode(t, got.Items["x"], &table)
			size = len(table.Rows)
		case "links":
			var links []any
			decode(t, got.Items["x"], &links)
			size = len(links)
		}
		if size > c.most || size < c.most-2 || !reply.Truncated {
			t.Errorf("%s: %d of %d, truncated %v", take, size, c.most, reply.Truncated)
		}
	}

	r.on(t, "/many")
	for limit, want := range map[int]int{0: 256, 100: 100, 9999: 2000} {
		m := browsing.M{"verb": "snapshot"}
		if limit > 0 {
			m["limit"] = limit
		}
		var reply struct {
			Elements  []struct{}
			Truncated bool
		}
		got := r.call(m)
		decode(t, got.Raw, &reply)
		n := len(reply.Elements)
		if n > want || n < min(want, 500) || !reply.Truncated || len(got.Raw) > 1<<20 { // 2000 are more than a reply may hold
			t.Errorf("a limit of %d: %d elements in %d bytes, truncated %v", limit, n, len(got.Raw), reply.Truncated)
		}
	}

	r.on(t, "/opens")
	var open []string
	for n := range 5 { // the fourth and fifth are one too many
		var closed string
		verb := "click"
		// a window may open a moment after the click
		for end := time.Now().Add(2 * time.Minute); len(open) < min(n+2, 4) || closed == "" && n >= 3; verb = "hover" {
			if time.Now().After(end) {
				break
			}
			var reply struct {
				Tabs []struct {
					ID     string `json:"tab_id"`
					Closed string
				}
			}
			decode(t, r.call(browsing.M{"verb": verb, "target": button("Open"),
				"expect": browsing.M{"kind": "focused", "target": button("Open"), "equals": true}, "allow_preexisting": true}).Raw,
				&reply)
			open = nil
			for _, tab := range reply.Tabs {
				if closed += tab.Closed; tab.Closed == "" {
					open = append(open, tab.ID)
				}
			}
		}
		if (closed == "too many tabs") != (n >= 3) || len(open) != min(n+2, 4) {
			t.Errorf("window %d: closed %q, tabs %v", n, closed, open)
		}
	}
	for _, tab := range open[1:] {
		r.call(browsing.M{"verb": "close", "tab": tab})
	}

	r.on(t, "/noise") // 21.6 Mpx that no JPEG makes small
	noise := r.call(browsing.M{"verb": "screenshot", "full_page": true, "quality": 90, "deadline_ms": 60_000})
	var picture struct{ Bytes int }
	decode(t, noise.Raw, &picture)
	if noise.Refusal != "result_too_large" && (picture.Bytes == 0 || picture.Bytes > 4<<20) {
		t.Errorf("noise: %s", noise.Raw)
	}
	r.on(t, "/tall") // 60 Mpx
	if got := r.call(browsing.M{"verb": "screenshot", "full_page": true,
		"deadline_ms": 60_000}); got.Refusal != "result_too_large" {
		t.Errorf("60 Mpx: %s", got.Raw)
	}
}

// processOf is the browser whose profiles are below a directory.
func processOf(t *testing.T, dir string) int {
	t.Helper()
	for pid, line := range commandLines(t) {
		if strings.Contains(line, "--user-data-dir="+dir+"/") && !strings.Contains(line, "--type=") {
			return pid
		}
	}
	return 0
}

func commandLines(t *testing.T) map[int]string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[int]string{}
	for _, path := range all {
		raw, _ := os.ReadFile(path) // some are gone by now
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			lines[pid] = string(raw)
		}
	}
	return lines
}

// proxyOf returns the proxy that a browser was started with.
func proxyOf(t *testing.T, pid int) string {
	t.Helper()
	_, rest, _ := strings.Cut(commandLines(t)[pid], "--proxy-server=")
	proxy, _, _ := strings.Cut(rest, "\x00")
	return proxy
}

func ownerOf(t *testing.T, pid int) uint32 {
	t.Helper()
	fi, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		t.Fatal(err)
	}
	return fi.Sys().(*syscall.Stat_t).Uid
}
