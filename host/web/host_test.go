package web_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/web"
)

// TestHost: 40 sets of headers, of which only those that name this host get in,
// whatever forwarding headers say.
func TestHost(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		s := serve(t, func(o *web.Options) {
			if trusted { // A listed proxy says who asks, never whom
				o.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			}
		}, web.Route{Method: "GET", Path: "/healthz", Open: true, Handle: ok},
			web.Route{Method: "GET", Path: "/v1/runs", Handle: ok})
		_, port, _ := net.SplitHostPort(s.addr)
		good := s.addr
		evil := "evil.example:" + port
		sets := []struct {
			target  string // "" is the path alone
			headers string // LF between
			let     bool
		}{
			{"", "Host: " + good, true},
			{"", "host: " + good, true},
			{"", "Host:" + good, true},
			{"", "Host:   " + good + "  ", true},
			{"", "Host: localhost:" + port, true},
			{"", "Host: LOCALHOST:" + port, true},
			{"", "Host: [::1]:" + port, true},
			{"", "Host: sluice-abcdefgh.localhost:" + port, true},
			{"http://" + good, "Host: " + good, true},
			{"", "Host: " + good + "\nX-Forwarded-Host: evil.example", true},
			{"", "Host: " + good + "\nForwarded: host=evil.example", true},
			{"", "Host: " + evil, false},
			{"", "Host: evil.example", false},
			{"", "Host: ", false},
			{"", "X-Nothing: 1", false},
			{"", "Host: 127.0.0.1", false},
			{"", "Host: localhost", false},
			{"", "Host: 127.0.0.1:1", false},
			{"", "Host: 127.0.0.1:" + port + "0", false},
			{"", "Host: localhost.:" + port, false},
			{"", "Host: 0.0.0.0:" + port, false},
			{"", "Host: 127.1:" + port, false},
			{"", "Host: 2130706433:" + port, false},
			{"", "Host: [::ffff:127.0.0.1]:" + port, false},
			{"", "Host: [0:0:0:0:0:0:0:1]:" + port, false},
			{"", "Host: sluice-zzzzzzzz.localhost:" + port, false},
			{"", "Host: x.localhost:" + port, false},
			{"", "Host: localhost.evil.example:" + port, false},
			{"", "Host: " + good + "@evil.example", false},
			{"", "Host: evil.example@" + good, false},
			{"", "Host: " + good + "/evil", false},
			{"", "Host: " + good + " evil.example", false},
			{"", "Host: " + good + ",evil.example", false},
			{"", "Host: " + evil + "\nX-Forwarded-Host: " + good, false},
			{"", "Host: " + evil + "\nForwarded: host=" + good, false},
			{"", "Host: " + evil + "\nX-Original-Host: " + good + "\nX-Forwarded-Proto: https\nX-Forwarded-For: 127.0.0.1",
				false},
			{"", "Host: " + good + "\nHost: " + evil, false},
			{"", "Host: " + evil + "\nHost: " + good, false},
			{"http://" + evil, "Host: " + good, false},
			{"http://" + good, "Host: " + evil, false},
		}
		if len(sets) != 40 {
			t.Fatalf("%d sets", len(sets))
		}
		for _, path := range []string{"/healthz", "/v1/runs"} {
			for _, set := range sets {
				all := s.raw("GET " + set.target + path + " HTTP/1.1\r\n" +
					strings.ReplaceAll(set.headers, "\n", "\r\n") + "\r\n\r\n")
				if len(all) != 1 {
					t.Errorf("trusted %v, %q %q: %d answers", trusted, set.target, set.headers, len(all))
					continue
				}
				switch got := all[0].Status; {
				case set.let && path == "/healthz" && got != 200, set.let && path == "/v1/runs" && got != 401:
					t.Errorf("trusted %v, %s %q %q: %d %s", trusted, path, set.target, set.headers, got, all[0].Body)
				case !set.let && got != 421 && got != 400:
					t.Errorf("trusted %v, %s %q %q: %d, want 421", trusted, path, set.target, set.headers, got)
				}
			}
		}
	}
}

// TestForwarded: forwarding headers are believed of listed proxies only, and of a
// chain the last address that is none of them.
func TestForwarded(t *testing.T) {
	for _, c := range []struct {
		proxies []string
		headers []string
		address string
		https   bool
	}{
		{nil, []string{"X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: https"}, "127.0.0.1", false},
		{[]string{"10.0.0.0/8"}, []string{"X-Forwarded-For: 6.6.6.6"}, "127.0.0.1", false},
		{[]string{"127.0.0.1/32"}, []string{"X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: https"}, "6.6.6.6", true},
		{[]string{"127.0.0.1/32"}, []string{"X-Forwarded-For: 6.6.6.6, 7.7.7.7"}, "7.7.7.7", false},
		{[]string{"127.0.0.1/32", "7.0.0.0/8"}, []string{"X-Forwarded-For: 5.5.5.5, 6.6.6.6, 7.7.7.7"}, "6.6.6.6", false},
		{[]string{"127.0.0.1/32"}, []string{"X-Forwarded-For: 6.6.6.6, nonsense"}, "127.0.0.1", false},
		{[]string{"127.0.0.1/32"}, nil, "127.0.0.1", false},
	} {
		var address string
		var https bool
		s := serve(t, func(o *web.Options) {
			for _, p := range c.proxies {
				o.Proxies = append(o.Proxies, netip.MustParsePrefix(p))
			}
		}, web.Route{Method: "GET", Path: "/healthz", Open: true, Handle: func(c *fiber.Ctx) error {
			address, https = web.Who(c).Address, web.Secure(c)
			return ok(c)
		}})
		a := s.do("GET", "/healthz", "", c.headers...)
		if a.Status != 200 || address != c.address || https != c.https {
			t.Errorf("%v %v: %d from %s, https %v", c.proxies, c.headers, a.Status, address, https)
		}
		if hsts := a.Header.Get("Strict-Transport-Security") != ""; hsts != https {
			t.Errorf("HSTS %v", hsts)
		}
	}
}
