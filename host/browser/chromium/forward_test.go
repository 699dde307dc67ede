package chromium_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// raw starts a server that speaks for itself and returns its port.
func raw(t *testing.T, speak func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				speak(conn)
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// What the server gets is written anew: nothing that was for the proxy, nothing
// of how it was framed, and the host of the request line.
func TestForwarded(t *testing.T) {
	got := make(chan string, 1)
	port := raw(t, func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		var b strings.Builder
		fmt.Fprintf(&b, "%s %s %s %d\n", r.Method, r.RequestURI, r.Host, r.ContentLength)
		_ = r.Header.Write(&b)
		got <- strings.ReplaceAll(b.String(), "\r", "") + string(body)
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSluice-Egress: denied\r\nAlt-Svc: h3=\":443\"\r\nProxy-Authenticate: Basic\r\n"+
			"Connection: X-Hop\r\nX-Hop: 1\r\nX-Kept: 1\r\nKeep-Alive: timeout=5\r\n\r\nok")
	})
	g := gate(t, chromium.GateOptions{Resolver: here("site.example")}, entry(t, "http://site.example:"+port, true))
	c := call(t, g)
	c.send("POST http://SITE.example:%s/p;a?q=1 HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n"+
		"Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nConnection: keep-alive, X-Secret, upgrade\r\nX-Secret: 1\r\n"+
		"Upgrade: websocket, h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nTE: trailers\r\nSluice-Egress: denied\r\nCookie: a=b\r\nAccept-Encoding: br\r\n\r\n"+
		"5\r\nhello\r\n0\r\n\r\n", port)
	r, body := c.reply("POST")
	want := "POST /p;a?q=1 site.example:" + port + " -1\nAccept-Encoding: br\nCookie: a=b\nhello"
	if diff := cmp.Diff(want, <-got); diff != "" {
		t.Error(diff)
	}
	if r.StatusCode != 200 || body != "ok" {
		t.Errorf("%s %q", r.Status, body)
	}
	wantHeader := http.Header{"Content-Length": {"2"}, "X-Kept": {"1"}}
	if diff := cmp.Diff(wantHeader, r.Header); diff != "" {
		t.Error(diff) // neither a type nor a date is made up
	}
}

// Requests that hide another one behind them.
func TestSmuggling(t *testing.T) {
	seen := make(chan string, 20)
	port := serveSite(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Method + " " + r.URL.Path })
	g := gate(t, chromium.GateOptions{Resolver: here("site.example")}, entry(t, "http://site.example:"+port, true))
	at := "http://site.example:" + port
	for name, text := range map[string]string{
		"two lengths":   "POST " + at + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
		"length list":   "POST " + at + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 5\r\n\r\nhello",
		"signed length": "POST " + at + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello",
		"other coding":  "POST " + at + "/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"two codings": "POST " + at +
			"/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
		"two hosts":          "GET " + at + "/ HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
		"folded":             "GET " + at + "/ HTTP/1.1\r\nHost: x\r\n folded: 1\r\n\r\n",
		"blank before colon": "GET " + at + "/ HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello",
		"no host":            "GET " + at + "/ HTTP/1.1\r\n\r\n",
		"NUL":                "GET " + at + "/ HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
		"CONNECT with body":  "CONNECT site.example:" + port + " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
		"CONNECT in chunks": "CONNECT site.example:" + port +
			" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"after a denial": "CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\nGET " + at +
			"/smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
		"prior knowledge": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET " + at + "/smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := call(t, g)
			c.send("%s", text)
			r, _ := c.reply("GET")
			if r.StatusCode < 400 || r.StatusCode == 502 {
				t.Errorf("%s", r.Status)
			}
			if rest := c.over(); rest != "" {
				t.Errorf("then %q", rest)
			}
		})
	}
	if len(seen) != 0 {
		t.Errorf("the server saw %q", <-seen)
	}
	// Two requests of one connection are two decisions.
	c := call(t, g)
	c.send("GET %s/a HTTP/1.1\r\nHost: x\r\n\r\nGET http://evil.example/ HTTP/1.1\r\nHost: site.example:%s\r\n\r\nGET %s/b HTTP/1.1\r\nHost: x\r\n\r\n", at, port, at)
	for _, want := range []int{200, 403, 200} {
		if r, _ := c.reply("GET"); r.StatusCode != want {
			t.Errorf("%s, want %d", r.Status, want)
		}
	}
	if a, b := <-seen, <-seen; a != "GET /a" || b != "GET /b" {
		t.Errorf("the server saw %q, %q", a, b)
	}
}

// What servers answer to take the place of the proxy, or to hurt it.
func TestHostileAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		status int
		body   string
	}{
		"password for a proxy": {"HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n", 502, ""},
		"other protocol":       {"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 502, ""},
		"no status":            {"HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n", 502, ""},
		"zero":                 {"HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n", 502, ""},
		"no HTTP":              {"SSH-2.0-x\r\n", 502, ""},
		"endless hints": {strings.Repeat("HTTP/1.1 103 X\r\nLink: </a>; rel=preload; x="+strings.Repeat("a", 1000)+
			"\r\n\r\n", 500), 502, ""},
		"huge headers": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 300<<10) + "\r\n\r\n", 502, ""},
		// The next hop is judged by itself.
		"redirect": {"HTTP/1.1 302 X\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n", 302, ""},
		"unpacked": {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 200, "abc"},
		"nothing":  {"", 502, ""},
	} {
		t.Run(name, func(t *testing.T) {
			port := raw(t, func(conn net.Conn) {
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, c.answer)
			})
			g := gate(t, chromium.GateOptions{}, entry(t, "http://127.0.0.1:"+port, true))
			r, body := ask(t, g, "http://127.0.0.1:"+port+"/")
			if r.StatusCode != c.status || c.status == 200 && body != c.body || r.Header.Get("Sluice-Egress") != "" ||
				r.Header.Get("Proxy-Authenticate") != "" {
				t.Errorf("%s %v %q", r.Status, r.Header, body)
			}
		})
	}
}

// A part is not told as the whole.
func TestCutAnswer(t *testing.T) {
	port := raw(t, func(c net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(c))
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
	})
	g := gate(t, chromium.GateOptions{}, entry(t, "http://127.0.0.1:"+port, true))
	c := call(t, g)
	c.send("GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\n\r\n", port)
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(r.Body); string(body) != "hello" || err == nil {
		t.Errorf("%q, %v", body, err)
	}
}

// Answers that come bit by bit are passed on bit by bit, as an EventSource needs.
func TestStreamed(t *testing.T) {
	next := make(chan struct{})
	port := serveSite(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 3 {
			fmt.Fprint(w, "data: x\n\n")
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})
	g := gate(t, chromium.GateOptions{}, entry(t, "http://127.0.0.1:"+port, true))
	c := call(t, g)
	c.send("GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\n\r\n", port)
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := io.ReadFull(r.Body, make([]byte, len("data: x\n\n"))); err != nil {
			t.Fatal(err)
		}
		next <- struct{}{}
	}
	if rest, err := io.ReadAll(r.Body); len(rest) != 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

// What never ends, and what is too much.
func TestSlowAndHuge(t *testing.T) {
	stalled := make(chan struct{})
	port := raw(t, func(c net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(c))
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello")
		<-stalled
	})
	silent := raw(t, func(net.Conn) { <-stalled })
	limited := func(change func(*chromium.GateLimits)) *gateFixture {
		l := chromium.DefaultGateLimits()
		change(&l)
		return gate(t, chromium.GateOptions{Limits: l}, entry(t, "http://127.0.0.1:"+port, true),
			entry(t, "http://127.0.0.1:"+silent, true))
	}
	hasty := limited(func(l *chromium.GateLimits) { l.Headers = 100 * time.Millisecond })
	small := limited(func(l *chromium.GateLimits) { l.HeaderBytes = 8 << 10 })
	g := limited(func(l *chromium.GateLimits) { l.Idle = 2 * time.Second }) // in which what is there passes on any machine
	t.Cleanup(func() { close(stalled) })
	t.Run("slow head", func(t *testing.T) {
		t.Parallel()
		c := call(t, hasty)
		c.send("GET http://127.0.0.1:%s/ HTTP/1.1\r\nX: ", port)
		c.over()
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		call(t, hasty).over()
	})
	t.Run("huge head", func(t *testing.T) {
		t.Parallel()
		c := call(t, small)
		c.send("GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", port, strings.Repeat("a", 16<<10))
		if r, _ := c.reply("GET"); r.StatusCode != 431 {
			t.Error(r.Status)
		}
	})
	t.Run("stalled answer", func(t *testing.T) {
		t.Parallel()
		c := call(t, g)
		c.send("GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\n\r\n", port)
		if got := c.over(); !strings.HasSuffix(got, "\r\n\r\nhello") {
			t.Errorf("%q", got)
		}
	})
	t.Run("silent server", func(t *testing.T) {
		t.Parallel()
		c := call(t, g)
		c.send("GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\n\r\n", silent)
		if r, _ := c.reply("GET"); r.StatusCode != 502 {
			t.Error(r.Status)
		}
	})
	t.Run("stalled upload that is denied", func(t *testing.T) {
		t.Parallel()
		c := call(t, g)
		c.send("POST http://evil.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
		c.over()
	})
	t.Run("stalled upload", func(t *testing.T) {
		t.Parallel()
		c := call(t, g)
		c.send("POST http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc", silent)
		c.over()
	})
}

// Connections beyond their number are closed at once, and the others are served on.
func TestConnectionLimit(t *testing.T) {
	l := chromium.DefaultGateLimits()
	l.Connections = 3
	port := serveSite(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	g := gate(t, chromium.GateOptions{Limits: l}, entry(t, "http://127.0.0.1:"+port, true))
	request := fmt.Sprintf("GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\n\r\n", port)
	var held []*caller
	for range 3 {
		c := call(t, g)
		c.send("%s", request)
		c.reply("GET")
		held = append(held, c)
	}
	call(t, g).over()
	for _, c := range held {
		c.send("%s", request)
		if r, body := c.reply("GET"); r.StatusCode != 200 || body != "ok" {
			t.Errorf("%s %q", r.Status, body)
		}
	}
}
