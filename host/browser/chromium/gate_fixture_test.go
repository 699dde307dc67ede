package chromium_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/egress"
)

// names is a resolver that remembers what it was asked. A name with several
// answers has one after the other, the last one for good.
type names struct {
	mu      sync.Mutex // guards what follows
	answers map[string][]string
	asked   []string
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	host = strings.TrimSuffix(host, ".")
	n.asked = append(n.asked, host)
	list := n.answers[host]
	if len(list) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(list) > 1 {
		n.answers[host] = list[1:]
	}
	var out []netip.Addr
	for a := range strings.FieldsSeq(list[0]) {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

func (n *names) queries() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.asked)
}

// here resolves every one of the names to this machine.
func here(list ...string) *names {
	n := &names{answers: map[string][]string{}}
	for _, name := range list {
		n.answers[name] = []string{"127.0.0.1"}
	}
	return n
}

// A gateFixture is a gate, and what it reported.
type gateFixture struct {
	*chromium.Gate
	mu   sync.Mutex // guards told
	told []chromium.Denial
}

func (h *gateFixture) note(d chromium.Denial) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, d)
}

// denials unbinds the gate and returns what was denied.
func (h *gateFixture) denials() []chromium.Denial {
	h.Unbind()
	return h.all()
}

func (h *gateFixture) all() []chromium.Denial {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.told)
}

// gate opens one in ModeFlags, unless the options say otherwise, and binds it.
func gate(t *testing.T, o chromium.GateOptions, entries ...egress.Entry) *gateFixture {
	t.Helper()
	if o.Mode == "" {
		o.Mode = chromium.ModeFlags
	}
	if o.Resolver == nil {
		o.Resolver = here()
	}
	g, err := chromium.OpenGate(o)
	if err != nil {
		t.Fatal(err)
	}
	h := &gateFixture{Gate: g}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	g.Bind(chromium.GateBinding{Policy: egress.NewPolicy(entries...), Denied: h.note})
	return h
}

// entry reads an entry; private ones may lead to this machine.
func entry(t *testing.T, text string, private bool) egress.Entry {
	t.Helper()
	e, err := egress.ParseEntry(text)
	if err != nil {
		t.Fatal(err)
	}
	e.Private = private
	return e
}

// A canary counts connections and must have none.
type canary struct {
	port int
	hits atomic.Int64
}

func listenCanary(t *testing.T, network, address string) *canary {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := &canary{port: l.Addr().(*net.TCPAddr).Port}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.hits.Add(1)
			_ = conn.Close()
		}
	}()
	return c
}

// serveSite starts a server of this machine and returns its port.
func serveSite(t *testing.T, handler http.HandlerFunc) (port string) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// A caller is a connection to the gate, as a browser has it.
type caller struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func call(t *testing.T, g *gateFixture) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.ProxyURL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	return &caller{t, conn, bufio.NewReader(conn)}
}

func (c *caller) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, format, args...); err != nil {
		c.t.Fatal(err)
	}
}

// reply reads one answer with its body, to a request of the method.
func (c *caller) reply(method string) (*http.Response, string) {
	c.t.Helper()
	r, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		c.t.Fatal(err)
	}
	if method == http.MethodConnect && r.StatusCode == http.StatusOK {
		return r, ""
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return r, string(body)
}

// over waits for the end of the connection and returns what came before.
func (c *caller) over() string {
	c.t.Helper()
	rest, err := io.ReadAll(c.in)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		c.t.Fatalf("the connection is still open after %q", rest)
	}
	return string(rest)
}

// tunnel opens one and expects that it is granted.
func tunnel(t *testing.T, g *gateFixture, to string) *caller {
	t.Helper()
	c := call(t, g)
	c.send("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
	if r, _ := c.reply("CONNECT"); r.StatusCode != 200 {
		t.Fatalf("CONNECT %s: %s", to, r.Status)
	}
	return c
}

// ask sends a request for a URL in absolute form.
func ask(t *testing.T, g *gateFixture, address string) (*http.Response, string) {
	t.Helper()
	c := call(t, g)
	c.send("GET %s HTTP/1.1\r\nHost: ignored.example\r\nConnection: close\r\n\r\n", address)
	return c.reply("GET")
}

// deniedPage fails unless an answer is the static one of a denial.
func deniedPage(t *testing.T, r *http.Response, body string) {
	t.Helper()
	h := r.Header
	if r.StatusCode != 403 ||
		body != "<!doctype html><title>Blocked</title><p>This address is not in the connection's network policy." ||
		h.Get("Content-Type") != "text/html; charset=utf-8" ||
		h.Get("Content-Security-Policy") != "default-src 'none'; sandbox" ||
		h.Get("Cache-Control") != "no-store" || h.Get("Sluice-Egress") != "denied" {
		t.Errorf("%s %v %q", r.Status, h, body)
	}
}

func policyOf(entries ...egress.Entry) *egress.Policy { return egress.NewPolicy(entries...) }

// insideArg makes the test binary a process that tries what it is told to.
const insideArg = "inside"

// insideProcess reads lines "NETWORK ADDRESS TEXT", sends the text there, and prints what
// came back as one line.
func insideProcess() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		parts := strings.SplitN(in.Text(), " ", 3)
		fmt.Printf("%q\n", try(parts[0], parts[1], strings.ReplaceAll(parts[2], "|", "\r\n")))
	}
}

func try(network, address, text string) string {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return "not connected"
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(text)); err != nil {
		return "not sent"
	}
	if network == "udp" {
		return "sent"
	}
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return "answered " + strings.TrimSpace(line)
}
