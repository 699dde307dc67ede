package chromium_test

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/egress"
)

// siteAddress is where the only site is that a policy lists. Nobody but the gate's
// resolver knows it.
const siteAddress = "127.0.0.7"

// A escapeSite serves the page that tries everything, over http and https.
type escapeSite struct {
	port, secure, other int // other is where it listens too, and no policy says so
	pin                 string
	done                chan string // what a page says it tried

	mu  sync.Mutex // guards what follows
	hit map[string]bool
}

func openSite(t *testing.T) *escapeSite {
	t.Helper()
	s := &escapeSite{done: make(chan string, 16), hit: map[string]bool{}}
	start := func(secure bool) int {
		srv := httptest.NewUnstartedServer(s)
		_ = srv.Listener.Close()
		srv.Listener = listenOn(t, siteAddress, 0)
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		if secure {
			srv.StartTLS()
			s.pin = pinOf(srv.Certificate())
		} else {
			srv.Start()
		}
		t.Cleanup(srv.Close)
		return srv.Listener.Addr().(*net.TCPAddr).Port
	}
	s.port, s.other, s.secure = start(false), start(false), start(true)
	// The canaries have the site's port on every other address of this machine.
	for _, address := range []string{"127.0.0.1", "::1", lan.String()} {
		srv := &http.Server{Handler: http.HandlerFunc(s.canary), ReadHeaderTimeout: time.Minute}
		l := listenOn(t, address, s.port)
		go func() { _ = srv.Serve(l) }()
		t.Cleanup(func() { _ = srv.Close() })
	}
	return s
}

func pinOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// canary notes which attempt arrived.
func (s *escapeSite) canary(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.hit[strings.TrimPrefix(r.URL.Path, "/")] = true
	s.mu.Unlock()
	w.Header().Set("Access-Control-Allow-Origin", "*")
}

// hits are the attempts that arrived since the last call.
func (s *escapeSite) hits() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Sorted(maps.Keys(s.hit))
	clear(s.hit)
	return list
}

// ServeHTTP implements http.Handler: the page, with the headers by which a page
// has a browser report things elsewhere.
func (s *escapeSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	switch r.URL.Path {
	case "/":
		away := fmt.Sprintf("127.0.0.1:%d", s.port)
		h.Set("Content-Security-Policy-Report-Only", "img-src 'none'; report-uri http://"+away+"/cspreport")
		h.Add("Content-Security-Policy-Report-Only", "font-src 'none'; report-to away")
		h.Set("Reporting-Endpoints", `away="https://`+away+`/reporting", default="https://`+away+`/reporting"`)
		h.Set("Report-To", `{"group":"nel","max_age":10000,"endpoints":[{"url":"https://`+away+`/nel"}]}`)
		h.Set("NEL", `{"report_to":"nel","max_age":10000,"success_fraction":1.0,"failure_fraction":1.0}`)
		h.Set("Link", "<http://"+away+
			"/linkpreload>; rel=preload; as=image, <http://linked.example>; rel=preconnect, <http://hinted.example>; rel=dns-prefetch")
		h.Set("Alt-Svc", fmt.Sprintf(`h3=":%d"; ma=1000, h3="127.0.0.1:%d"; ma=1000`, s.secure, s.port))
		http.ServeFile(w, r, "testdata/escape/index.html")
	case "/config.js":
		h.Set("Content-Type", "text/javascript")
		next := ""
		if r.TLS != nil {
			next = fmt.Sprintf("http://site.example:%d/", s.port)
		}
		config, _ := json.Marshal(map[string]any{
			"port": s.port, "other": s.other, "lan": lan, "next": next,
			"names": []string{"evil.example", "rebound.example", "a.localhost"},
			"spellings": []string{"127.0.0.1", "127.1", "2130706433", "0177.0.0.1", "0x7f.1", "0.0.0.0", "0", "[::1]",
				"[::ffff:127.0.0.1]", "[::]",
				"localhost", "localhost."},
		})
		fmt.Fprintf(w, "'use strict';const config=%s;", config)
	case "/redirect":
		to, _ := url.QueryUnescape(r.URL.RawQuery)
		http.Redirect(w, r, to, http.StatusFound)
	case "/done":
		select {
		case s.done <- r.URL.RawQuery:
		default:
		}
	case "/favicon.ico":
	default:
		http.ServeFile(w, r, filepath.Join("testdata/escape", filepath.Base(r.URL.Path)))
	}
}

// executable is the executable, behind its wrapper.
func executable(t *testing.T) string {
	t.Helper()
	path := os.Getenv("SLUICE_BROWSER")
	if path == "" {
		var err error
		if path, err = exec.LookPath("chromium"); err != nil {
			t.Fatalf("this test needs Chromium: install it (.ci/run does), or name it in SLUICE_BROWSER: %v", err)
		}
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(string(text[:2]), "#!") {
		dir := regexp.MustCompile(`LIBDIR=(\S+)/\$APPNAME`).FindSubmatch(text)
		if dir == nil {
			t.Fatalf("%s is a script of another kind: name the executable in SLUICE_BROWSER", path)
		}
		return filepath.Join(string(dir[1]), "chromium", "chromium")
	}
	return path
}

// isShell reports whether it is the headless shell, which has fewer ways out and
// which its flags do not hold: it is used in a namespace only.
func isShell(t *testing.T) bool { return strings.Contains(filepath.Base(executable(t)), "headless") }

// start starts a browser on the site, and ends it with the test. Its uid is
// nobody else's.
func start(t *testing.T, s *escapeSite, flags []chromium.Flag, wrap func(*exec.Cmd) error) (pid int) {
	t.Helper()
	dir := t.TempDir()
	const uid = 399_999
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil { // #nosec G302 -- the browser is to come through
			t.Fatal(err)
		}
	}
	var args []string
	for _, f := range flags {
		args = append(args, f.String())
	}
	args = append(args, "--user-data-dir="+filepath.Join(dir, "profile"), "--disable-popup-blocking",
		"--disable-breakpad", "--mute-audio",
		"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
		"--disable-renderer-backgrounding", "--autoplay-policy=no-user-gesture-required", "--short-reporting-delay",
		"--ignore-certificate-errors-spki-list="+s.pin, fmt.Sprintf("https://site.example:%d/", s.secure))
	cmd := exec.Command(executable(t), args...) // #nosec G204 -- of this test
	cmd.Env = append(chromium.Environment(), "HOME="+dir, "PATH=/usr/bin:/bin", "LANG=C.UTF-8")
	cmd.SysProcAttr = attr
	var said strings.Builder
	cmd.Stderr = &said
	cmd.WaitDelay = 5 * time.Second
	if err := wrap(cmd); err != nil {
		t.Fatal(err)
	}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // with whose end the browser ends too
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is killed
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		if t.Failed() {
			t.Logf("the browser said: %.4000s", said.String())
		}
	})
	return cmd.Process.Pid
}

// wait returns when both pages have tried everything.
func (s *escapeSite) wait(t *testing.T) {
	t.Helper()
	for _, page := range []string{"https", "http"} {
		select {
		case tried := <-s.done:
			for _, name := range []string{"fetch", "webrtc", "speculation", "websocket", "worker", "form", "popup", "beacon"} {
				if !slices.Contains(strings.Split(tried, ","), name) {
					t.Errorf("the page of %s did not try %s: %s", page, name, tried)
				}
			}
			if page == "https" && !strings.Contains(tried, "service") {
				t.Errorf("the page of https did not try a service worker: %s", tried)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the page of %s was not done", page)
		}
	}
}

// unguarded leaves the browser nothing but its gate: what else would keep a page
// from its own machine is switched off.
func unguarded(flags []chromium.Flag) []chromium.Flag {
	for i, f := range flags {
		if f.Name == "disable-features" {
			flags[i].Value += ",LocalNetworkAccessChecks,LocalNetworkAccessChecksWebRTC,LocalNetworkAccessChecksWebSockets,LocalNetworkAccessChecksWebTransport," +
				"PrivateNetworkAccessSendPreflights,BlockInsecurePrivateNetworkRequests"
		}
	}
	return flags
}

func without(flags []chromium.Flag, names ...string) []chromium.Flag {
	return slices.DeleteFunc(flags, func(f chromium.Flag) bool { return slices.Contains(names, f.Name) })
}

// Whatever a page tries, no connection, no datagram and no look-up leaves the browser
// but to its gate, in either mode; and the canaries see it all when there is no gate.
func TestEscape(t *testing.T) {
	t.Parallel()
	executable(t) // so that a kept result is that browser's
	if !inWorld(t) {
		return
	}
	furnish(t)
	s := openSite(t)
	w := listen(t, siteAddress)
	t.Run("open", func(t *testing.T) { openEscape(t, s, w) })
	n := &names{answers: map[string][]string{"site.example": {siteAddress},
		"rebound.example": {"203.0.113.7", "127.0.0.1"}}}
	entries := []egress.Entry{
		entry(t, fmt.Sprintf("http://site.example:%d", s.port), true),
		entry(t, fmt.Sprintf("site.example:%d", s.secure), true),
		entry(t, fmt.Sprintf("http://rebound.example:%d", s.port), false),
		entry(t, fmt.Sprintf("rebound.example:%d", s.port), false),
	}
	for _, mode := range []string{chromium.ModeFlags, chromium.ModeNamespace} {
		t.Run(mode, func(t *testing.T) {
			if mode == chromium.ModeNamespace && !hasNamespaces(t) || mode == chromium.ModeFlags && isShell(t) {
				return
			}
			g := gate(t, chromium.GateOptions{Mode: mode, Resolver: n}, entries...)
			w.pass(g.ProxyURL())
			s.hits() // what the browser before did at its end
			w.seen(t)
			pid := start(t, s, unguarded(chromium.Flags(g.ProxyURL(), 1280, 900)), g.Wrap)
			if err := g.Attach(pid); err != nil {
				t.Fatal(err)
			}
			s.wait(t)
			if hits := s.hits(); len(hits) != 0 {
				t.Errorf("arrived: %q", hits)
			}
			if seen := w.seen(t); len(seen) != 0 {
				t.Errorf("escaped: %v", seen)
			}
			checkDenials(t, g, s)
		})
	}
	for _, q := range n.queries() {
		if q != "site.example" && q != "rebound.example" {
			t.Errorf("%s was looked up", q)
		}
	}
	if isShell(t) {
		return // it is never held by flags
	}
	t.Run("dead", func(t *testing.T) {
		dead(t, s, w, gate(t, chromium.GateOptions{Mode: chromium.ModeFlags, Resolver: n}, entries...))
	})
}

// openEscape shows that the page is one from which things do escape, and that each would
// be noticed. Not every browser comes to everything when the machine is busy, so
// what one missed the next may bring.
func openEscape(t *testing.T, s *escapeSite, w *packetTap) {
	flags := without(unguarded(chromium.Flags("", 1280, 900)), "proxy-server", "proxy-bypass-list", "host-resolver-rules",
		"webrtc-ip-handling-policy", "disable-quic", "no-pings")
	flags = append(flags, chromium.Flag{Name: "host-resolver-rules", Value: "MAP site.example " + siteAddress})
	missing := s.escapes(isShell(t))
	for i := 0; i < 4 && len(missing) > 0; i++ {
		t.Run("browser", func(t *testing.T) {
			start(t, s, flags, func(*exec.Cmd) error { return nil })
			s.wait(t)
			for tries := 0; tries < 50 && len(missing) > 0; tries++ { // some it does when it has nothing else to do
				for _, name := range s.hits() {
					delete(missing, name)
				}
				for name := range w.seen(t) {
					delete(missing, name)
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	for name := range missing {
		t.Errorf("what would escape was missed: %s", name)
	}
}

// escapes are the attempts that arrive, and what the tap sees, when nothing stops
// them. The shell asks for no manifest and looks nothing up that is only hinted at.
func (s *escapeSite) escapes(shell bool) map[string]bool {
	names := []string{
		"audio", "beacon", "cspreport", "cssimage", "download", "embed", "events", "fetch", "font", "form", "iframe", "image",
		"keepalive", "linkpreload", "module", "modulepreload", "object", "ping", "popup", "prefetch", "preload", "redirect",
		"redirectframe", "script", "service", "shared", "speculation", "style", "video", "websocket", "worker", "xhr",
		"udp 192.0.2.9:3478", "udp 224.0.0.251:5353", "dns evil.example.", "dns stun.evil.example.", "dns rebound.example.",
	}
	for _, host := range []string{"127.0.0.1", "[::1]", lan.String(), "169.254.169.254"} {
		names = append(names, fmt.Sprintf("tcp %s:%d", host, s.port))
	}
	for _, host := range []string{"127.0.0.1", lan.String()} {
		names = append(names, fmt.Sprintf("udp %s:%d", host, s.port))
	}
	if !shell {
		names = append(names, "manifest", "dns hinted.example.", "dns linked.example.")
	}
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// dead shows that a page whose gate ends while it tries finds no other way.
func dead(t *testing.T, s *escapeSite, w *packetTap, g *gateFixture) {
	w.pass(g.ProxyURL())
	flags := chromium.Flags(g.ProxyURL(), 1280, 900)
	start(t, s, unguarded(flags), g.Wrap)
	await(t, func() bool { return g.Counts().Denied > 20 })
	w.pass("")
	s.hits()
	w.seen(t)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	knock, knocked := "tcp "+strings.TrimPrefix(g.ProxyURL(), "http://"), 0
	await(t, func() bool {
		for name, n := range w.seen(t) {
			if name != knock {
				t.Errorf("escaped: %s", name)
			}
			knocked += n
		}
		return knocked > 100
	})
	if hits := s.hits(); len(hits) != 0 {
		t.Errorf("arrived: %q", hits)
	}
}

func await(t *testing.T, what func() bool) {
	t.Helper()
	end, again := time.After(2*time.Minute), time.NewTicker(10*time.Millisecond)
	defer again.Stop()
	for !what() {
		select {
		case <-again.C:
		case <-end:
			t.Fatal("it does not come to that")
		}
	}
}

// checkDenials fails unless what was tried came by the gate.
func checkDenials(t *testing.T, g *gateFixture, s *escapeSite) {
	t.Helper()
	got := map[string]int{}
	for _, d := range g.denials() {
		got[fmt.Sprintf("%s:%d %s", d.Host, d.Port, d.Verdict)] += d.Count
	}
	at := ":" + strconv.Itoa(s.port) + " "
	for _, name := range []string{"127.0.0.1" + at + "host_denied", "::1" + at + "host_denied",
		lan.String() + at + "host_denied", "169.254.169.254" + at + "host_denied",
		"localhost" + at + "host_denied", "a.localhost" + at + "host_denied", "evil.example" + at + "host_denied",
		"rebound.example" + at + "address_denied", "site.example:" + strconv.Itoa(s.other) + " port_denied"} {
		if got[name] == 0 {
			t.Errorf("%s was not tried by the gate", name)
		}
	}
	if counts := g.Counts(); counts.Denied < 200 || counts.Allowed == 0 {
		t.Errorf("%+v", counts)
	}
}
