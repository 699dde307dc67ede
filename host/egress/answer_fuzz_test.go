package egress_test

import (
	"bufio"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/egress"
)

// FuzzAddress: an address is public only if nothing that the standard library
// knows of speaks against it, and however it is written.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"8.8.8.8", "127.0.0.1", "::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "fe80::1%eth0",
		"2002:7f00:1::", "2606:4700::1111"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	own := netip.MustParseAddr("93.184.216.34")
	f.Fuzz(func(t *testing.T, text string, nat64 bool) {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return
		}
		table := egress.Table{NAT64: nat64, Own: func() []netip.Addr { return []netip.Addr{own} }}
		public := table.Public(a)
		if a.Is4() && table.Public(netip.AddrFrom16(a.As16())) != public {
			t.Fatalf("%v is judged otherwise when it is written as IPv6", a)
		}
		if !public {
			return
		}
		b := a.Unmap()
		if wide := b.As16(); b.Is6() && nat64 &&
			strings.HasPrefix(string(wide[:]), "\x00\x64\xff\x9b\x00\x00\x00\x00\x00\x00\x00\x00") {
			b = netip.AddrFrom4([4]byte(wide[12:]))
		}
		if !b.IsGlobalUnicast() || b.IsPrivate() || b.IsLoopback() || b.IsLinkLocalUnicast() || b.IsMulticast() ||
			b.Zone() != "" || b == own {
			t.Fatalf("%v is public", a)
		}
	})
}

// FuzzAnswerHeaders: whatever head a server sends, a guest sees no cookie and no
// header of the connection, all of it text; and a cookie goes to no other
// site and, marked so, over no open line.
func FuzzAnswerHeaders(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Domain=example.org; Path=/; Secure\r\nContent-Encoding: gzip\r\n\r\n", true)
	f.Add("HTTP/1.1 302 Found\r\nSet-Cookie: __Host-x=y; Domain=org\r\nset-cookie2: z\r\nX: \xff\r\n\r\n", false)
	f.Fuzz(func(t *testing.T, head string, packed bool) {
		answer, err := http.ReadResponse(bufio.NewReader(strings.NewReader(head)), nil)
		if err != nil {
			return
		}
		defer answer.Body.Close()
		for _, pair := range egress.HeadersFor(answer.Header, packed) {
			switch strings.ToLower(pair[0]) {
			case "set-cookie", "set-cookie2", "connection", "keep-alive", "transfer-encoding", "trailer", "upgrade":
				t.Fatalf("the guest sees %q", pair)
			}
			if !utf8.ValidString(pair[1]) {
				t.Fatalf("%q is no text", pair)
			}
		}
		from := &url.URL{Scheme: "https", Host: "www.example.org", Path: "/a/b"}
		for to, own := range map[string]bool{"https://www.example.org/a/b": true, "http://www.example.org/a/b": true,
			"https://example.com/": false, "https://other.org/a/b": false, "https://10.0.0.1/": false} {
			u, err := url.Parse(to)
			if err != nil {
				t.Fatal(err)
			}
			sent, err := egress.CookiesAfter(from, answer, u)
			if err != nil {
				t.Fatal(err)
			}
			if len(sent) > 0 && !own {
				t.Fatalf("cookies of %s go to %s: %v", from, to, sent)
			}
			size := 0
			for _, c := range sent {
				size += len(c.Name) + len(c.Value)
				if u.Scheme == "http" && strings.HasPrefix(strings.ToLower(c.Name), "__") &&
					(strings.HasPrefix(strings.ToLower(c.Name), "__host-") ||
						strings.HasPrefix(strings.ToLower(c.Name), "__secure-")) {
					t.Fatalf("%s goes over an open line", c.Name)
				}
			}
			if len(sent) > 50 || size > 32<<10 {
				t.Fatalf("%d cookies of %d bytes are sent", len(sent), size)
			}
		}
	})
}

// FuzzTarget: a URL that passes names one server, over HTTP, in one way, and
// passes unchanged a second time.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"https://example.org/", "http://EXAMPLE.org:80/a#b", "https://[::1]:443/", "//x/y", "../up",
		"https://a@b/", "http://0x7f.1/", "https://xn--bcher-kva.example/?q=%20"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, raw string, redirected bool) {
		var from *url.URL
		if redirected {
			from = &url.URL{Scheme: "https", Host: "www.example.org", Path: "/a/b"}
		}
		u, host, err := egress.Target(raw, from)
		if err != nil {
			return
		}
		if canonical, err := egress.CanonicalHost(host); err != nil || canonical != host ||
			strings.Trim(u.Hostname(), "[]") != host {
			t.Fatalf("%q goes to host %q, dialled as %q: %v", raw, u.Hostname(), host, err)
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Opaque != "" || u.Fragment != "" {
			t.Fatalf("%q passed as %q", raw, u)
		}
		again, sameHost, err := egress.Target(u.String(), nil)
		if err != nil || sameHost != host || again.Host != u.Host || again.Scheme != u.Scheme {
			t.Fatalf("%q passed as %q, and that as %v: %v", raw, u, again, err)
		}
	})
}
