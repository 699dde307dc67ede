package chromium_test

import (
	"bufio"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// secure starts a server with TLS and returns its port.
func secure(t *testing.T) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS.ServerName)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}

// hello is the first flight of a client that asks for a server.
func hello(t *testing.T, conf *tls.Config) []byte {
	t.Helper()
	conf.InsecureSkipVerify = true // #nosec G402 -- nothing is shaken hands with
	ours, theirs := net.Pipe()
	go func() { _ = tls.Client(ours, conf).Handshake() }()
	head := make([]byte, 5)
	if _, err := io.ReadFull(theirs, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(head[3:]))
	if _, err := io.ReadFull(theirs, body); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	return append(head, body...)
}

// inRecords cuts the one record of a flight into records of n bytes.
func inRecords(flight []byte, n int) (out []byte) {
	for body := flight[5:]; len(body) > 0; {
		k := min(n, len(body))
		out = append(out, flight[0], flight[1], flight[2], byte(k>>8), byte(k))
		out, body = append(out, body[:k]...), body[k:]
	}
	return out
}

// encryptedHello is a configuration for hiding the name secret behind public.
func encryptedHello(t *testing.T, public string) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var c []byte
	c = append(c, 1, 0, 0x20, 0, 32)
	c = append(c, key.PublicKey().Bytes()...)
	c = append(c, 0, 4, 0, 1, 0, 1, 0, byte(len(public)))
	c = append(append(c, public...), 0, 0)
	one := append([]byte{0xfe, 0x0d, byte(len(c) >> 8), byte(len(c))}, c...)
	return append([]byte{byte(len(one) >> 8), byte(len(one))}, one...)
}

// What a tunnel begins with, each in one piece and byte by byte.
func TestOpenings(t *testing.T) {
	const host = "site.example"
	named := func(name string) []byte { return hello(t, &tls.Config{ServerName: name}) }
	ask := func(lines ...string) []byte {
		return []byte("GET /chat HTTP/1.1\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n")
	}
	socket := ask("Host: site.example:8080", "Connection: Upgrade", "Upgrade: websocket")
	const both = "both"
	for name, c := range map[string]struct {
		host    string
		may     string // https, http or both
		data    []byte
		verdict string
		broken  bool // no verdict, but the end
	}{
		"the host":               {host, "https", named(host), "", false},
		"the host, in capitals":  {host, "https", named("SITE.Example"), "", false},
		"another host":           {host, "https", named("evil.example"), "server_name_denied", false},
		"a subdomain":            {host, "https", named("a.site.example"), "server_name_denied", false},
		"no name":                {host, "https", hello(t, &tls.Config{}), "server_name_denied", false},
		"an address has none":    {"192.0.2.1", "https", hello(t, &tls.Config{}), "", false},
		"an address with a name": {"192.0.2.1", "https", named(host), "server_name_denied", false},
		"old versions": {host, "https",
			hello(t, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS12}), "", false},
		"records of one byte":   {host, "https", inRecords(named(host), 1), "", false},
		"another, records of 7": {host, "https", inRecords(named("evil.example"), 7), "server_name_denied", false},
		"encrypted, outer the host": {host, "https",
			hello(t, &tls.Config{ServerName: "inner.example", MinVersion: tls.VersionTLS13,
				EncryptedClientHelloConfigList: encryptedHello(t, host)}), "", false},
		"encrypted, outer another": {host, "https",
			hello(t, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS13,
				EncryptedClientHelloConfigList: encryptedHello(t, "front.example")}), "server_name_denied", false},
		"TLS where only http is": {host, "http", named(host), "scheme_denied", false},
		"either, TLS":            {host, both, named(host), "", false},
		"half a hello":           {host, "https", named(host)[:100], "", true},
		"nothing":                {host, both, nil, "", true},
		"no hello":               {host, "https", []byte{22, 3, 1, 0, 4, 1, 0, 0, 0}, "server_name_denied", false},
		"an alert":               {host, "https", []byte{21, 3, 1, 0, 2, 1, 0}, "scheme_denied", false},
		"a record beyond all bound": {host, "https", append([]byte{22, 3, 1, 0xff, 0xff}, make([]byte, 70000)...),
			"server_name_denied", false},
		"empty records for ever": {host, "https", []byte(strings.Repeat("\x16\x03\x01\x00\x00", 20000)),
			"server_name_denied", false},

		"a WebSocket":              {host, "http", socket, "", false},
		"either, a WebSocket":      {host, both, socket, "", false},
		"a WebSocket where TLS is": {host, "https", socket, "scheme_denied", false},
		"no WebSocket":             {host, "http", ask("Host: site.example:8080"), "protocol_denied", false},
		"of another host": {host, "http", ask("Host: evil.example:8080", "Upgrade: websocket"),
			"server_name_denied", false},
		"of another port": {host, "http", ask("Host: site.example", "Upgrade: websocket"),
			"server_name_denied", false},
		"of no host": {host, "http", ask("Upgrade: websocket"), "protocol_denied", false},
		"of two hosts": {host, "http",
			ask("Host: site.example:8080", "Host: evil.example", "Upgrade: websocket"), "protocol_denied", false},
		"with a body": {host, "http",
			ask("Host: site.example:8080", "Upgrade: websocket", "Content-Length: 5"), "protocol_denied", false},
		"in chunks": {host, "http",
			ask("Host: site.example:8080", "Upgrade: websocket", "Transfer-Encoding: chunked"), "protocol_denied", false},
		"another protocol": {host, "http", ask("Host: site.example:8080", "Upgrade: h2c"),
			"protocol_denied", false},
		"several protocols": {host, "http", ask("Host: site.example:8080", "Upgrade: websocket", "Upgrade: h2c"),
			"protocol_denied", false},
		"more behind it": {host, "http", append(socket[:len(socket):len(socket)], "GET /"...),
			"protocol_denied", false},
		"bare line ends": {host, "http", []byte(strings.ReplaceAll(string(socket), "\r\n", "\n")),
			"protocol_denied", false},
		"a bare line end": {host, "http", ask("Host: site.example:8080\nX: y", "Upgrade: websocket"),
			"protocol_denied", false},
		"a bare return": {host, "http", ask("Host: site.example:8080\rX: y", "Upgrade: websocket"),
			"protocol_denied", false},
		"folded": {host, "http", ask("Host: site.example:8080", " x", "Upgrade: websocket"),
			"protocol_denied", false},
		"absolute form": {host, "http",
			[]byte("GET http://evil.example/ HTTP/1.1\r\nHost: site.example:8080\r\nUpgrade: websocket\r\n\r\n"),
			"protocol_denied", false},
		"a post": {host, "http",
			[]byte("POST / HTTP/1.1\r\nHost: site.example:8080\r\nUpgrade: websocket\r\n\r\n"), "protocol_denied", false},
		"HTTP/2 by prior knowledge":   {host, "http", []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "protocol_denied", false},
		"a server's word first (SSH)": {host, "http", []byte("SSH-2.0-x\r\n"), "protocol_denied", false},
		"an endless head": {host, "http", []byte("GET / HTTP/1.1\r\nX: " + strings.Repeat("a", 70000)),
			"protocol_denied", false},
		"half a head": {host, "http", socket[:30], "", true},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, sent, err := chromium.Preamble(c.host, 8080, c.may != "http", c.may != "https", c.data)
			if verdict != c.verdict || (err != nil) != c.broken {
				t.Fatalf("verdict %q, want %q; %v", verdict, c.verdict, err)
			}
			if verdict == "" && string(sent) != string(c.data) {
				t.Errorf("%d bytes would be sent of %d", len(sent), len(c.data))
			}
			if len(sent) > chromium.MostPreamble+(16<<10) {
				t.Errorf("%d bytes were read", len(sent))
			}
		})
	}
}

// Nothing makes the reader of openings fall over, and it passes on what it read.
func FuzzOpening(f *testing.F) {
	f.Add([]byte("GET /chat HTTP/1.1\r\nHost: site.example:8080\r\nUpgrade: websocket\r\n\r\n"))
	f.Add([]byte{22, 3, 1, 0, 4, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		verdict, sent, err := chromium.Preamble("site.example", 8080, true, true, data)
		if !strings.HasPrefix(string(data), string(sent)) {
			t.Error("what is sent is not what came")
		}
		text := strings.ToLower(string(sent))
		if verdict == "" && err == nil && data[0] != 22 &&
			(!strings.Contains(text, "site.example") || !strings.HasSuffix(text, "\r\n\r\n")) {
			t.Errorf("%q passed", data)
		}
	})
}

// Whatever is a target has one spelling.
func FuzzAuthority(f *testing.F) {
	for _, s := range spellings {
		f.Add(s + ":443")
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, port, ok := chromium.Authority(s)
		if !ok || host == "" {
			return
		}
		again, p, ok := chromium.Authority(net.JoinHostPort(host, fmt.Sprint(port)))
		if !ok || again != host || p != port {
			t.Errorf("%q is %q, and that %q", s, host, again)
		}
	})
}

// TLS through the gate is the server's and the browser's own.
func TestTunnel(t *testing.T) {
	port := secure(t)
	g := gate(t, chromium.GateOptions{Resolver: here("site.example")}, entry(t, "site.example:"+port, true))
	c := tunnel(t, g, "site.example:"+port)
	conn := tls.Client(c.Conn, &tls.Config{ServerName: "site.example", InsecureSkipVerify: true}) // #nosec G402 -- of this test
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(r.Body); string(body) != "site.example" || err != nil {
		t.Errorf("%q %v", body, err)
	}
	other := tunnel(t, g, "site.example:"+port)
	err = tls.Client(other.Conn, &tls.Config{ServerName: "evil.example", InsecureSkipVerify: true}).Handshake() // #nosec G402 -- of this test
	if err == nil {
		t.Error("another server name passed")
	}
	want := []chromium.Denial{{"site.example", number(port), "server_name_denied", 1}}
	if diff := cmp.Diff(want, g.denials()); diff != "" {
		t.Error(diff)
	}
}

func number(port string) (n uint16) {
	_, _ = fmt.Sscan(port, &n)
	return n
}

// A denied opening reaches the server with nothing at all.
func TestNothingSent(t *testing.T) {
	got := make(chan []byte, 1)
	port := raw(t, func(c net.Conn) {
		b, _ := io.ReadAll(c)
		got <- b
	})
	g := gate(t, chromium.GateOptions{Resolver: here("site.example")}, entry(t, "http://site.example:"+port, true))
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "\x16\x03\x01", "EHLO x\r\n"} {
		c := tunnel(t, g, "site.example:"+port)
		c.send("%s", text)
		c.over()
		if b := <-got; len(b) != 0 {
			t.Errorf("after %q the server got %q", text, b)
		}
	}
}

// ws:// through the gate, and what is no WebSocket once the server has spoken.
func TestWebSocket(t *testing.T) {
	got := make(chan string, 1)
	consent := make(chan bool, 2)
	port := raw(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		if <-consent {
			fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nwelcome")
		} else {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
		}
		_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		b, _ := io.ReadAll(in)
		got <- string(b)
	})
	g := gate(t, chromium.GateOptions{Resolver: here("site.example")}, entry(t, "http://site.example:"+port, true))
	request := "GET /chat HTTP/1.1\r\nHost: site.example:" + port + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

	consent <- true
	c := tunnel(t, g, "site.example:"+port)
	c.send("%s", request)
	if _, err := io.ReadFull(c.in,
		make([]byte, len("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nwelcome"))); err != nil {
		t.Fatal(err)
	}
	c.send("frames")
	if s := <-got; s != "frames" {
		t.Errorf("the server got %q", s)
	}

	consent <- false
	c = tunnel(t, g, "site.example:"+port)
	c.send("%s", request)
	if r, body := c.reply("GET"); r.StatusCode != 200 || body != "no" {
		t.Errorf("%s %q", r.Status, body)
	}
	c.send("GET /smuggled HTTP/1.1\r\nHost: evil.example\r\n\r\n")
	if s := <-got; s != "" {
		t.Errorf("the server got %q", s)
	}
}

// echo is a server that answers once the client has said all, and says more then.
func echo(t *testing.T) string {
	return raw(t, func(c net.Conn) {
		b, err := io.ReadAll(c)
		if err == nil {
			fmt.Fprintf(c, "%d bytes", len(b))
		}
	})
}

// The end of one direction is passed on, and the other goes on.
func TestHalfClose(t *testing.T) {
	port := echo(t)
	g := gate(t, chromium.GateOptions{AnyServerName: true}, entry(t, "127.0.0.1:"+port, true))
	c := tunnel(t, g, "127.0.0.1:"+port)
	c.send("%s", strings.Repeat("a", 1<<20))
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := c.over(); got != "1048576 bytes" {
		t.Errorf("%q", got)
	}
	// The other way round.
	got := make(chan string, 1)
	port = raw(t, func(c net.Conn) {
		_ = c.(*net.TCPConn).CloseWrite()
		b, _ := io.ReadAll(c)
		got <- string(b)
	})
	g.Bind(chromium.GateBinding{Policy: policyOf(entry(t, "127.0.0.1:"+port, true))})
	c = tunnel(t, g, "127.0.0.1:"+port)
	c.over()
	c.send("late")
	_ = c.Close()
	if s := <-got; s != "late" {
		t.Errorf("the server got %q", s)
	}
}

// The caps of tunnels.
func TestTunnelLimits(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	port := raw(t, func(c net.Conn) {
		go func() { _, _ = io.Copy(io.Discard, c) }()
		<-stop
	})
	e := entry(t, "127.0.0.1:"+port, true)
	at := "127.0.0.1:" + port
	t.Run("number", func(t *testing.T) {
		g := gate(t, chromium.GateOptions{}, e)
		var held []*caller
		for range 256 {
			held = append(held, tunnel(t, g, at))
		}
		c := call(t, g)
		c.send("CONNECT %s HTTP/1.1\r\n\r\n", at)
		r, body := c.reply("CONNECT")
		deniedPage(t, r, body)
		_ = held[0].Close()
		for c := 0; ; c++ { // its place is free once the gate has noticed
			next := call(t, g)
			next.send("CONNECT %s HTTP/1.1\r\n\r\n", at)
			if r, _ := next.reply("CONNECT"); r.StatusCode == 200 {
				break
			}
			if c > 1000 {
				t.Fatal("a place never becomes free")
			}
		}
		for _, d := range g.denials() {
			if d.Verdict != chromium.VerdictTunnels {
				t.Errorf("%+v", d)
			}
		}
	})
	t.Run("idle", func(t *testing.T) {
		l := chromium.DefaultGateLimits()
		l.Idle = time.Second
		g := gate(t, chromium.GateOptions{Limits: l, AnyServerName: true}, e)
		c := tunnel(t, g, at)
		for range 5 {
			c.send("x") // puts the end off
		}
		c.over()
	})
	t.Run("silent opening", func(t *testing.T) {
		l := chromium.DefaultGateLimits()
		l.Dial = time.Second
		g := gate(t, chromium.GateOptions{Limits: l}, e)
		c := tunnel(t, g, at)
		c.send("\x16\x03\x01")
		c.over()
	})
	t.Run("bytes", func(t *testing.T) {
		g := gate(t, chromium.GateOptions{AnyServerName: true})
		told := &gateFixture{Gate: g.Gate}
		g.Bind(chromium.GateBinding{Policy: policyOf(e, entry(t, "http://"+at, true)), Bytes: 1000, Denied: told.note})
		c := tunnel(t, g, at)
		_, _ = c.Write(make([]byte, 2000))
		c.over()
		c = call(t, g)
		c.send("CONNECT %s HTTP/1.1\r\n\r\n", at)
		r, body := c.reply("CONNECT")
		deniedPage(t, r, body)
		r, body = ask(t, g, "http://"+at+"/")
		deniedPage(t, r, body)
		want := []chromium.Denial{{"127.0.0.1", number(port), "byte_limit", 3}}
		if diff := cmp.Diff(want, told.denials()); diff != "" {
			t.Error(diff)
		}
	})
}

// A run has one budget of bytes, for its own requests and for its browser.
func TestBytesOfTheRun(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	port := raw(t, func(net.Conn) { <-stop })
	at := "127.0.0.1:" + port
	e := entry(t, at, true)
	passed := new(atomic.Int64)
	g := gate(t, chromium.GateOptions{AnyServerName: true})
	g.Bind(chromium.GateBinding{Policy: policyOf(e, entry(t, "http://"+at, true)), Bytes: 1000, Passed: passed})
	c := tunnel(t, g, at)
	passed.Add(995) // what the run asked for itself
	_, _ = c.Write(make([]byte, 100))
	c.over()
	if passed.Load() < 1000 {
		t.Errorf("the browser's bytes are not counted: %d", passed.Load())
	}
	r, body := ask(t, g, "http://"+at+"/")
	deniedPage(t, r, body)
}

// A gate that fails says so, and one that is closed ends all it had.
func TestEnd(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	port := raw(t, func(net.Conn) { <-stop })
	g := gate(t, chromium.GateOptions{}, entry(t, "127.0.0.1:"+port, true))
	select {
	case <-g.Dead():
		t.Fatal("dead at once")
	default:
	}
	c := tunnel(t, g, "127.0.0.1:"+port)
	g.Fail()
	<-g.Dead()
	if err := g.Err(); err == nil || errors.Is(err, chromium.ErrGateClosed) {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if rest := c.over(); rest != "" {
		t.Errorf("%q", rest)
	}

	g = gate(t, chromium.GateOptions{}, entry(t, "127.0.0.1:"+port, true))
	c = call(t, g)
	c.send("GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\n\r\n", port)
	for range 3 {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	<-g.Dead()
	if !errors.Is(g.Err(), chromium.ErrGateClosed) {
		t.Error(g.Err())
	}
	_ = c.over()
	if _, err := net.Dial("tcp", strings.TrimPrefix(g.ProxyURL(), "http://")); err == nil {
		t.Error("it still listens")
	}
	g.Bind(chromium.GateBinding{}) // does nothing
}
