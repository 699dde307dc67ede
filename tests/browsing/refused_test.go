package browsing_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/tests/browsing"
)

// inward resolves every name to this machine.
type inward struct{}

func (inward) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// When the proxy denies a host, the guest learns that the host was denied, even where
// the browser sees only a failed tunnel. An untrusted certificate is an error of its
// own, which nothing overrides.
func TestRefusedOverTLS(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "<p id=in>inside</p>")
	}))
	defer secure.Close()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/to":
			http.Redirect(w, r, "https://inside.example/", http.StatusFound)
			return
		}
		_, _ = fmt.Fprintf(w, "<!doctype html><a id=self href=%s>self</a> <a id=inside href=https://inside.example/>inside</a> <a id=hop href=/to>hop</a> <a id=port href=https://inside.example:8443/>port</a>", secure.URL)
	}))
	defer site.Close()
	h := browsing.Host(t, browser.Options{Resolver: inward{}, ActionsPerMinute: 1000})
	s := browsing.Begin(t, h, browser.SessionOptions{}, site.URL, secure.URL, "https://inside.example")
	s.Must(browsing.M{"verb": "open", "url": site.URL + "/"})
	for _, c := range []struct{ url, id, code, detail string }{
		{secure.URL + "/", "self", "UNKNOWN", "certificate_error"},
		{"https://inside.example/", "inside", "ACTION_REJECTED", "host_denied"},
		{site.URL + "/to", "hop", "ACTION_REJECTED", "host_denied"},
		{"https://inside.example:8443/", "port", "ACTION_REJECTED", "host_denied"},
	} {
		t.Run(c.id, func(t *testing.T) {
			if r := s.Call(browsing.M{"verb": "navigate", "url": c.url}); r.Code != c.code || r.Detail != c.detail {
				t.Errorf("navigate: %s", r)
			}
			s.Must(browsing.M{"verb": "navigate", "url": site.URL + "/"})
			r := s.Call(browsing.M{"verb": "click", "target": browsing.Selector("id", c.id),
				"expect": browsing.M{"kind": "exists", "target": browsing.Selector("id", "in")}})
			if r.Code != c.code || r.Detail != c.detail {
				t.Errorf("click: %s", r)
			}
			s.Must(browsing.M{"verb": "navigate", "url": site.URL + "/"})
		})
	}
	s.End()
	verdicts := map[string]bool{}
	for _, e := range s.Run.Events("run.browser_egress_denied") {
		verdicts[fmt.Sprint(e.Data["host"], " ", e.Data["verdict"])] = true
		// which it asks after an error of a certificate
		if e.Data["host"] != "inside.example" && e.Data["host"] != "connectivitycheck.gstatic.com" {
			t.Errorf("the browser itself called %v", e.Data)
		}
	}
	if !verdicts["inside.example address_denied"] {
		t.Errorf("%v", verdicts)
	}
}
