package chromium_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// What the policy denies is neither looked up nor connected to, whichever way the
// browser asks.
func TestDenied(t *testing.T) {
	n := &names{answers: map[string][]string{
		"inner.example.com": {"127.0.0.1"}, "mixed.example.com": {"93.184.216.34 10.0.0.1"},
		"meta.example.com": {"169.254.169.254"},
	}}
	g := gate(t, chromium.GateOptions{Resolver: n}, entry(t, "inner.example.com", false),
		entry(t, "http://inner.example.com", false),
		entry(t, "mixed.example.com", false), entry(t, "http://meta.example.com", false),
		entry(t, "*.shop.example.com", false))
	for _, c := range []struct{ target, verdict string }{
		{"http://other.example.com/", "host_denied"},
		{"http://other.example.com:80/x?q=secret", "host_denied"},
		{"http://shop.example.com/", "host_denied"},
		{"http://a.shop.example.com/", "scheme_denied"},
		{"https://inner.example.com/", "scheme_denied"}, // the proxy opens no TLS
		{"ftp://inner.example.com/", "scheme_denied"},
		{"http://inner.example.com:8080/", "port_denied"},
		{"http://inner.example.com/", "address_denied"},
		{"http://INNER.Example.COM./", "address_denied"},
		{"http://meta.example.com/latest/meta-data/", "address_denied"},
		{"other.example.com:443", "host_denied"},
		{"shop.example.com:443", "host_denied"},
		{"a.shop.example.com:80", "scheme_denied"},
		{"inner.example.com:22", "port_denied"},
		{"inner.example.com:443", "address_denied"},
		{"inner.example.com:80", "address_denied"},
		{"mixed.example.com:443", "address_denied"},
		{"xn--nxasmq6b:443", "host_denied"},
	} {
		t.Run(c.target, func(t *testing.T) {
			var r *http.Response
			var body string
			if strings.Contains(c.target, "://") {
				r, body = ask(t, g, c.target)
			} else {
				conn := call(t, g)
				conn.send("CONNECT %s HTTP/1.1\r\n\r\n", c.target)
				r, body = conn.reply("CONNECT")
			}
			deniedPage(t, r, body)
		})
	}
	for _, q := range n.queries() {
		if !slices.Contains([]string{"inner.example.com", "mixed.example.com", "meta.example.com"}, q) {
			t.Errorf("%s was looked up", q)
		}
	}
	if c := g.Counts(); c.Denied != 18 || c.Allowed != 0 {
		t.Errorf("%+v", c)
	}
	want := []chromium.Denial{
		{"a.shop.example.com", 80, "scheme_denied", 2},
		{"inner.example.com", 22, "port_denied", 1},
		{"inner.example.com", 80, "address_denied", 3},
		{"inner.example.com", 80, "scheme_denied", 1},
		{"inner.example.com", 443, "address_denied", 1},
		{"inner.example.com", 443, "scheme_denied", 1},
		{"inner.example.com", 8080, "port_denied", 1},
		{"meta.example.com", 80, "address_denied", 1},
		{"mixed.example.com", 443, "address_denied", 1},
		{"other.example.com", 80, "host_denied", 2},
		{"other.example.com", 443, "host_denied", 1},
		{"shop.example.com", 80, "host_denied", 1},
		{"shop.example.com", 443, "host_denied", 1},
		{"xn--nxasmq6b", 443, "host_denied", 1},
	}
	for _, d := range want {
		if g.Verdict(d.Host, d.Port) == "" || g.Verdict(d.Host, d.Port+1) != "" {
			t.Errorf("%+v: the last verdict is %q, beside it %q", d, g.Verdict(d.Host, d.Port), g.Verdict(d.Host, d.Port+1))
		}
	}
	if v := g.Verdict("mixed.example.com", 443); v != "address_denied" {
		t.Errorf("the last verdict is %q", v)
	}
	got := g.denials() // No paths, no queries
	if v := g.Verdict("mixed.example.com", 443); v != "" {
		t.Errorf("the next run is told %q", v)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The spellings of loopback that programs disagree about, and some that they
// agree about: none of them is a host that a policy of names has.
var spellings = []string{
	"127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0",
	"0.0.0.0", "127.0.0.1.", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
	"[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "localhost", "LOCALHOST", "localhost.", "a.localhost",
	"localhost.localdomain", "127.0.0.1.nip.io", "127。0。0。1", "①②⑦.⓪.⓪.①", "127.0.0.1%00.listed.example",
	"listed.example%2f@127.0.0.1", "[fe80::1%25lo]", "[::1%25lo]",
}

// No spelling of this machine reaches it.
func TestSpellings(t *testing.T) {
	c := listenCanary(t, "tcp", "127.0.0.1:0")
	n := &names{}
	g := gate(t, chromium.GateOptions{Resolver: n}, entry(t, fmt.Sprintf("http://listed.example:%d", c.port), false),
		entry(t, fmt.Sprintf("listed.example:%d", c.port), false))
	for _, s := range spellings {
		to := fmt.Sprintf("%s:%d", s, c.port)
		conn := call(t, g)
		conn.send("CONNECT %s HTTP/1.1\r\nHost: listed.example:%d\r\n\r\n", to, c.port)
		if r, _ := conn.reply("CONNECT"); r.StatusCode != 403 && r.StatusCode != 400 {
			t.Errorf("CONNECT %s: %s", to, r.Status)
		}
		if r, _ := ask(t, g, "http://"+to+"/"); r.StatusCode != 403 && r.StatusCode != 400 {
			t.Errorf("GET http://%s: %s", to, r.Status)
		}
	}
	if c.hits.Load() != 0 || len(n.queries()) != 0 {
		t.Errorf("%d connections, look-ups of %q", c.hits.Load(), n.queries())
	}
}

// A request line that two readers could read differently is refused, and the
// Host header decides nothing.
func TestAmbiguousTargets(t *testing.T) {
	c := listenCanary(t, "tcp", "127.0.0.1:0")
	g := gate(t, chromium.GateOptions{Resolver: here("listed.example")}, entry(t, "http://listed.example", false),
		entry(t, "listed.example", false))
	for _, line := range []string{
		"GET http://user@listed.example/ HTTP/1.1", "GET http://listed.example@127.0.0.1:%d/ HTTP/1.1",
		"GET http://listed.example:80@127.0.0.1:%d/ HTTP/1.1", "GET http://127.0.0.1:%d\\@listed.example/ HTTP/1.1",
		"GET http:listed.example/ HTTP/1.1", "GET http:///x HTTP/1.1", "GET //listed.example/ HTTP/1.1", "GET / HTTP/1.1",
		"GET * HTTP/1.1", "OPTIONS * HTTP/1.1", "GET http://listed.example:0/ HTTP/1.1",
		"GET http://listed.example:/ HTTP/1.1", "GET http://listed.example:080/ HTTP/1.1",
		"GET http://listed.example:65616/ HTTP/1.1", "GET http://listed.example:+80/ HTTP/1.1",
		"GET http://listed.example/#@127.0.0.1 HTTP/1.1", "GET http://listed.example/?x#y HTTP/1.1",
		"GET http://listed.example/ HTTP/2.0", "GET http://listed.example/ HTTP/1.1 x",
		"GET  http://listed.example/ HTTP/1.1", "PRI * HTTP/2.0", "CONNECT listed.example HTTP/1.1",
		"CONNECT listed.example:443/ HTTP/1.1", "CONNECT user@listed.example:443 HTTP/1.1",
		"CONNECT /listed.example:443 HTTP/1.1", "CONNECT http://listed.example:443 HTTP/1.1",
		"CONNECT listed.example:443?x HTTP/1.1", "CONNECT listed.example:443#127.0.0.1:%d HTTP/1.1",
		"CONNECT listed.example:0443 HTTP/1.1", "CONNECT listed.example:0 HTTP/1.1", "CONNECT :443 HTTP/1.1",
		"CONNECT listed.example:127.0.0.1:%d HTTP/1.1",
	} {
		if strings.Contains(line, "%d") {
			line = fmt.Sprintf(line, c.port)
		}
		conn := call(t, g)
		conn.send("%s\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n", line, c.port)
		r, _ := conn.reply("GET")
		if r.StatusCode < 400 || r.StatusCode == 502 {
			t.Errorf("%s: %s", line, r.Status)
		}
	}
	if c.hits.Load() != 0 {
		t.Errorf("%d connections", c.hits.Load())
	}
}

// A name that changes between look-ups is judged by the answer that is dialled;
// one that has several answers by the worst.
func TestRebinding(t *testing.T) {
	c := listenCanary(t, "tcp", "127.0.0.1:0")
	at := fmt.Sprintf("rebound.example:%d", c.port)
	n := &names{answers: map[string][]string{"rebound.example": {"203.0.113.7", "127.0.0.1", "0.0.0.0", "::1",
		"::ffff:127.0.0.1", "64:ff9b::7f00:1", "93.184.216.34 127.0.0.1", "fe80::1"}}}
	g := gate(t, chromium.GateOptions{Resolver: n}, entry(t, "http://"+at, false), entry(t, at, false))
	for range 4 {
		r, body := ask(t, g, "http://"+at+"/")
		deniedPage(t, r, body)
		conn := call(t, g)
		conn.send("CONNECT %s HTTP/1.1\r\n\r\n", at)
		r, body = conn.reply("CONNECT")
		deniedPage(t, r, body)
	}
	if c.hits.Load() != 0 {
		t.Errorf("%d connections", c.hits.Load())
	}
	if got := len(n.queries()); got != 8 {
		t.Errorf("%d look-ups for 8 requests", got)
	}
	want := []chromium.Denial{{"rebound.example", uint16(c.port), "address_denied", 8}}
	if diff := cmp.Diff(want, g.denials()); diff != "" {
		t.Error(diff)
	}
}

// An owner's own entry reaches this machine, at that port only.
func TestPrivate(t *testing.T) {
	port := serveSite(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host, " ", r.RequestURI) })
	g := gate(t, chromium.GateOptions{}, entry(t, "http://127.0.0.1:"+port, true))
	r, body := ask(t, g, "http://127.0.0.1:"+port+"/a%2fb?c=%00;d")
	if r.StatusCode != 200 || body != "127.0.0.1:"+port+" /a%2fb?c=%00;d" {
		t.Errorf("%s %q", r.Status, body)
	}
	r, body = ask(t, g, g.ProxyURL()+"/") // the gate itself
	deniedPage(t, r, body)
	if c := g.Counts(); c != (chromium.GateCounts{Allowed: 1, Denied: 1}) {
		t.Errorf("%+v", c)
	}
}

// Without a policy everything is denied; a run leaves nothing to the next one.
func TestBindings(t *testing.T) {
	one := serveSite(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "one") })
	two := serveSite(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "two") })
	first := entry(t, "http://127.0.0.1:"+one, true)
	g := gate(t, chromium.GateOptions{}, first)
	if _, body := ask(t, g, "http://127.0.0.1:"+one+"/"); body != "one" {
		t.Errorf("bound: %q", body)
	}
	open := tunnel(t, g, "127.0.0.1:"+one)
	g.Unbind()
	if rest := open.over(); rest != "" {
		t.Errorf("a tunnel that outlives its run: %q", rest)
	}
	r, body := ask(t, g, "http://127.0.0.1:"+one+"/")
	deniedPage(t, r, body)

	other := &gateFixture{Gate: g.Gate}
	g.Bind(chromium.GateBinding{Policy: policyOf(entry(t, "http://127.0.0.1:"+two, true)), Denied: other.note})
	if _, body := ask(t, g, "http://127.0.0.1:"+two+"/"); body != "two" {
		t.Errorf("bound again: %q", body)
	}
	r, body = ask(t, g, "http://127.0.0.1:"+one+"/")
	deniedPage(t, r, body)
	if got := other.denials(); len(got) != 1 || got[0].Count != 1 {
		t.Errorf("the second run was told %+v", got)
	}
	if got := g.denials(); len(got) != 0 {
		t.Errorf("the first run was told %+v", got)
	}
}
