//go:build linux

package browser_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/egress"
)

const shop = `<!doctype html><title>Shop</title><h1>Shop</h1>
<label>Name <input id=name autocomplete=username></label><label>Password <input id=pw type=password></label>
<button id=save onclick="document.getElementById('out').textContent='Saved '+document.getElementById('name').value">Save</button>
<button id=leak onclick="document.getElementById('out').textContent='it is '+document.getElementById('pw').value+' '+btoa(document.getElementById('pw').value)">Leak</button>
<button id=tell onclick="setTimeout(()=>fetch('/told'),100)">Tell</button>
<button id=hang onclick="setTimeout(()=>{for(;;);},0)">Hang</button>
<p id=out role=status></p><main>signed in</main>`

// A realDesk is a session with a browser of this machine and a site on it.
type realDesk struct {
	*browser.Session
	host *browser.Host
	log  *log
	site string
}

// told receives once for each click on the shop's button "Tell", a moment after the browser dispatched it.
var told = make(chan struct{}, 10)

// open makes sessions of one host with real browsers. The browsers of a machine
// without one are not tested, and the test says so.
func realHost(t *testing.T, change func(*browser.Options)) (h *browser.Host, site, data string) {
	t.Helper()
	data, err := os.MkdirTemp("", "sluice-browser-") // 0700, as a host has it, where others can pass
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(data) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/told" {
			told <- struct{}{}
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: "topsecret", Path: "/", MaxAge: 3600})
		_, _ = fmt.Fprint(w, shop)
	}))
	t.Cleanup(server.Close)
	o := browser.Options{Data: data, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&o)
	}
	if h, err = browser.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if f := h.Facts(t.Context()); f.Browser == "" {
		t.Fatalf("no browser: %s", f.Problem)
	}
	return h, server.URL, data
}

// shared is the host of the tests that need none of their own.
var shared struct {
	sync.Once
	host *browser.Host
	data string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.host != nil {
		if err := shared.host.Close(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	_ = os.RemoveAll(shared.data)
	os.Exit(code)
}

func sharedHost(t *testing.T) *browser.Host {
	t.Helper()
	shared.Do(func() {
		if shared.data, shared.err = os.MkdirTemp("", "sluice-browser-"); shared.err == nil {
			shared.host, shared.err = browser.New(browser.Options{Data: shared.data})
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	if f := shared.host.Facts(t.Context()); f.Browser == "" {
		t.Fatalf("no browser: %s", f.Problem)
	}
	return shared.host
}

func realSession(t *testing.T, h *browser.Host, site string, change func(*browser.SessionOptions)) *realDesk {
	t.Helper()
	e, err := egress.ParseEntry(site)
	if err != nil {
		t.Fatal(err)
	}
	e.Private = true
	o := browser.SessionOptions{Connection: "c", Connector: "shop", Policy: egress.NewPolicy(e), Interactive: true}
	if change != nil {
		change(&o)
	}
	d := &realDesk{Session: h.Session(o), host: h, log: &log{}, site: site}
	d.Begin("run_"+o.Connection, d.log)
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *realDesk) call(t *testing.T, request string) (map[string]any, abi.Errno) {
	t.Helper()
	reply, errno := d.Handle(context.Background(), abi.CallBrowser, []byte(strings.ReplaceAll(request, "SITE", d.site)))
	var out map[string]any
	if err := json.Unmarshal(reply, &out); err != nil {
		t.Fatalf("%s: %q: %v", request, reply, err)
	}
	return out, errno
}

func (d *realDesk) ok(t *testing.T, request string) map[string]any {
	t.Helper()
	began := time.Now()
	out, errno := d.call(t, request)
	t.Logf("%.70s: %s", request, time.Since(began).Round(time.Millisecond))
	if errno != abi.OK {
		t.Fatalf("%s: %s %v", request, errno, out)
	}
	return out
}

// The thin path in a real browser: open, type, click with proof, read, hand cookies
// over, lose nothing of a secret, close.
func TestRealBrowser(t *testing.T) {
	h, site, data := realHost(t, nil)
	var handed []*http.Cookie
	d := realSession(t, h, site, func(o *browser.SessionOptions) {
		o.Request.CookieHandoff = []string{"127.0.0.1"}
		o.Cookies = func(_ string, c []*http.Cookie) int { handed = c; return len(c) }
		o.Trace = true
	})
	d.Seal("password", handle, "correct-horse", [][]byte{[]byte("correct-horse"), []byte("Y29ycmVjdC1ob3JzZQ")},
		fillAt(site))
	out := d.ok(t, `{"verb":"open","url":"SITE/"}`)
	t.Logf("%v", out)
	out = d.ok(t, `{"verb":"type","target":{"selector":{"id":"name"}},"value":{"plain":"Ann"}}`)
	if out["success"] != true {
		t.Fatalf("%v", out)
	}
	out = d.ok(t, `{"verb":"click","target":{"selector":{"role":"button","name":"Save"}},"expect":{"kind":"text","target":{"selector":{"id":"out"}},"op":"equals","value":"Saved Ann"}}`)
	if out["success"] != true {
		t.Fatalf("%v", out)
	}
	out = d.ok(t, `{"verb":"type","target":{"selector":{"id":"pw"}},"value":{"sealed":"`+handle+`"}}`)
	if out["success"] != true {
		t.Fatalf("%v", out)
	}
	out = d.ok(t, `{"verb":"click","target":{"selector":{"id":"leak"}},"expect":{"kind":"text","target":{"selector":{"id":"out"}},"op":"contains","value":"it is"}}`)
	if out["success"] != true {
		t.Fatalf("%v", out)
	}
	for _, request := range []string{
		`{"verb":"snapshot","include":["elements","console"]}`,
		`{"verb":"extract","items":[{"name":"o","take":"text","target":{"selector":{"id":"out"}}},{"name":"p","take":"value","target":{"selector":{"id":"pw"}}}]}`,
	} {
		text, _ := json.Marshal(d.ok(t, request))
		if strings.Contains(string(text), "correct-horse") || strings.Contains(string(text), "Y29ycmVjdC1ob3JzZQ") ||
			!strings.Contains(string(text), handle) {
			t.Errorf("%s: %s", request, text)
		}
	}
	if shot := d.ok(t, `{"verb":"screenshot"}`); shot["mime"] != "image/jpeg" || shot["handle"].(float64) < 1<<30 {
		t.Errorf("%v", shot)
	}
	out = d.ok(t, `{"verb":"cookies","to":"network","hosts":["127.0.0.1"]}`)
	if len(handed) != 1 || handed[0].Value != "topsecret" {
		t.Errorf("%v %v", out, handed)
	}
	if out, errno := d.call(t, `{"verb":"navigate","url":"https://elsewhere.example/"}`); errno != abi.OK ||
		out["success"] == true || out["detail"] != "host_denied" || out["dispatched"] != false {
		t.Errorf("%s %v", errno, out)
	}
	if out := d.ok(t, `{"verb":"close"}`); out["graceful"] != true {
		t.Errorf("%v", out)
	}
	if err := d.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	leftTrace(t, d.log, data, "run_c")
	said := d.log.said()
	if len(said) != 2 || said[0] != "browser trace started: browser-trace-run_c.zip" ||
		!strings.HasPrefix(said[1], "browser trace written: browser-trace-run_c.zip (") {
		t.Errorf("%q", said)
	}
}

// leftTrace looks at the trace that a run left: it is the file that the run was told
// of, and nothing of a secret or a cookie is in it.
func leftTrace(t *testing.T, l *log, data, run string) {
	t.Helper()
	told := l.of("artifact.created")
	if len(told) != 1 || told[0].data["type"] != browser.TraceArtifact || told[0].data["media"] != "application/zip" {
		t.Fatalf("%+v", told)
	}
	f, err := browser.OpenTrace(browser.Traces(data), run)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(content); int64(len(content)) != told[0].data["size"] ||
		"sha256:"+hex.EncodeToString(sum[:]) != told[0].data["digest"] {
		t.Errorf("%d bytes are not %v", len(content), told[0].data)
	}
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	pictures := 0
	for _, file := range z.File {
		r, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file.Name, ".jpg") {
			pictures++
		}
		for _, secret := range []string{"correct-horse", "Y29ycmVjdC1ob3JzZQ", "topsecret"} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s holds %s", file.Name, secret)
			}
		}
	}
	if pictures == 0 || len(z.File) < 3 {
		t.Errorf("%d files, %d pictures", len(z.File), pictures)
	}
	t.Logf("%v: %d bytes, %d files, %d pictures", told[0].data["summary"], len(content), len(z.File), pictures)
}

// mainProcess is the own process of a browser whose profile is below a directory.
func mainProcess(t *testing.T, below string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if line := string(text); strings.Contains(line, "user-data-dir="+below) && !strings.Contains(line, "--type=") {
			return pid
		}
	}
	return 0
}

// A browser lingers for its connection, and what a site kept is there after a graceful
// end too; memory is looked at. Whose it is, and that nothing of it is left.
func TestRealKept(t *testing.T) {
	h, site, data := realHost(t, func(o *browser.Options) { o.Linger = time.Minute })
	visit := func(id string) (reused bool, took time.Duration, cookies int) {
		d := realSession(t, h, site, func(o *browser.SessionOptions) {
			o.Request.CookieHandoff = []string{"127.0.0.1"}
			o.Cookies = func(_ string, c []*http.Cookie) int { cookies = len(c); return len(c) }
		})
		began := time.Now()
		out := d.ok(t, `{"verb":"open","profile":"`+id+`"}`)
		took = time.Since(began)
		if tabs := out["tabs"].([]any); len(tabs) != 1 || tabs[0].(map[string]any)["url_host"] != "" {
			t.Errorf("a tab of another run: %v", tabs)
		}
		d.ok(t, `{"verb":"cookies","to":"network","hosts":["127.0.0.1"]}`)
		d.ok(t, `{"verb":"navigate","url":"SITE/"}`)
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
		return out["reused"].(bool), took, cookies
	}
	if reused, took, cookies := visit("p"); reused || cookies != 0 {
		t.Errorf("first: reused %t, %d cookies", reused, cookies)
	} else {
		t.Logf("cold: %s", took)
	}
	reused, took, cookies := visit("p")
	t.Logf("warm: %s", took)
	if !reused || cookies != 1 {
		t.Errorf("second: reused %t, %d cookies", reused, cookies)
	}
	pid := mainProcess(t, data)
	if pid == 0 {
		t.Fatal("nothing lingers")
	}
	fi, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		t.Fatal(err)
	}
	if uid := fi.Sys().(*syscall.Stat_t).Uid; os.Geteuid() == 0 && uid < 1000 {
		t.Errorf("it runs as uid %d", uid)
	}
	if err := h.Forget(t.Context(), "other"); err != nil {
		t.Error(err)
	}
	if err := h.Forget(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	if mainProcess(t, data) != 0 {
		t.Error("a browser outlived its connection")
	}
	if _, err := os.Stat(filepath.Join(data, "profiles", "c")); err == nil {
		t.Error("a profile outlived its connection")
	}
}

// A browser that is killed while its owner is asked to use it, and one that is killed
// within a verb.
func TestRealKilled(t *testing.T) {
	h, site, data := realHost(t, nil)
	d := realSession(t, h, site, nil)
	d.ok(t, `{"verb":"open","url":"SITE/","persistent":false}`)
	if a := d.Probe(t.Context()); a.Status != "available" {
		t.Fatalf("%+v", a)
	}
	d.Asked("q1", "manual_action", time.Time{})
	began := time.Now()
	kill(t, filepath.Join(data, "profiles", ".temporary"))
	for len(d.log.losses()) == 0 && time.Since(began) < time.Minute {
		time.Sleep(time.Millisecond)
	}
	t.Logf("noticed after %s", time.Since(began))
	if got := d.log.losses(); len(got) != 1 || got[0].Code != fleet.CodeUnreachable &&
		got[0].Code != fleet.CodeDisconnected {
		t.Errorf("%+v after %s", got, time.Since(began))
	}
	if a := d.Surface(); a.Status != "unavailable" {
		t.Errorf("%+v", a)
	}
	if out, errno := d.call(t, `{"verb":"snapshot"}`); errno != abi.EUNAVAIL || out["code"] != "surface_lost" {
		t.Errorf("%s %v", errno, out)
	}

	d = realSession(t, h, site, func(o *browser.SessionOptions) { o.Connection = "d" })
	d.ok(t, `{"verb":"open","url":"SITE/"}`)
	type answer struct {
		out   map[string]any
		errno abi.Errno
	}
	answers := make(chan answer)
	go func() {
		reply, errno := d.Handle(context.Background(), abi.CallBrowser,
			[]byte(`{"verb":"click","target":{"selector":{"id":"tell"}},"expect":{"kind":"text","target":{"selector":{"id":"out"}},"op":"equals","value":"never"}}`))
		var out map[string]any
		_ = json.Unmarshal(reply, &out)
		answers <- answer{out, errno}
	}()
	<-told // within the window of the proof
	began = time.Now()
	kill(t, filepath.Join(data, "profiles", "d"))
	select {
	case a := <-answers:
		t.Logf("answered after %s", time.Since(began))
		if a.errno != abi.OK || a.out["success"] != false || a.out["failure_code"] != "UNKNOWN" ||
			a.out["detail"] != "surface_lost" || a.out["dispatched"] != true {
			t.Errorf("%s %v", a.errno, a.out)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("a verb blocks on a dead browser")
	}
}

func kill(t *testing.T, below string) {
	t.Helper()
	pid := mainProcess(t, below)
	if pid == 0 {
		t.Fatal("no browser runs")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// A session that has ended is made by the owner, on pages of the site.
func TestRealSession(t *testing.T) {
	signedIn := atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if signedIn.Load() {
			_, _ = fmt.Fprint(w, "<!doctype html><main>welcome</main>")
			return
		}
		_, _ = fmt.Fprint(w, "<h1>Sign in</h1>")
	}))
	defer server.Close()
	h, _, _ := realHost(t, nil)
	d := realSession(t, h, server.URL, nil)
	d.log.ask = func(ctx context.Context, _ string, _ time.Duration) (string, string, error) {
		screen, id, gone := d.Screen()
		if screen == nil || id == "" || gone == nil {
			t.Error("the owner has nothing to sign in with")
		} else if host := screen.Facts().Host; !strings.HasPrefix(server.URL, "http://"+host) {
			t.Errorf("the owner sees %q", host)
		}
		if err := d.Taken(ctx); err != nil {
			t.Error(err)
		}
		signedIn.Store(true)
		d.Released()
		return "q1", "success", nil
	}
	out := d.ok(t, `{"verb":"open","session":{"probe":{"url":"SITE/home","expect":{"kind":"text","target":{"selector":{"css":"main"}},"op":"equals","value":"welcome"},"timeout_ms":3000},"login_url":"SITE/login"}}`)
	if s := out["session"].(map[string]any); s["state"] != "recovered" || s["interaction_id"] != "q1" {
		t.Errorf("%v", s)
	}
}
