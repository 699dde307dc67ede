package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// TestSameOrigin: what a session may do, by the headers that say which page asked.
func TestSameOrigin(t *testing.T) {
	s := serve(t, nil,
		web.Route{Method: "GET", Path: "/v1/runs", Scope: access.RunsRead, Handle: ok},
		web.Route{Method: "GET", Path: "/v1/events", Scope: access.RunsRead, Stream: true, Handle: ok},
		web.Route{Method: "POST", Path: "/v1/runs", Scope: access.RunsCreate, Handle: ok},
		web.Route{Method: "DELETE", Path: "/v1/runs", Scope: access.RunsCreate, Handle: ok},
		web.Route{Method: "POST", Path: "/ui/session", Open: true, Handle: ok},
		web.Route{Method: "GET", Path: "/ui/", Page: true, Handle: ok})
	own := "Origin: http://" + s.addr
	site := "Sec-Fetch-Site: same-origin"
	csrf := web.HeaderCSRF + ": " + s.login.CSRFToken
	navigate := "Sec-Fetch-Mode: navigate"
	for _, c := range []struct {
		what    string
		headers []string
		get     int // GET
		stream  int // GET of a stream
		post    int // POST and DELETE
	}{
		{"nothing", nil, 200, 403, 403},
		{"page token alone", []string{csrf}, 200, 403, 403},
		{"same origin", []string{own, site, csrf}, 200, 200, 200},
		{"origin alone", []string{own, csrf}, 200, 200, 200},
		{"site alone", []string{site, csrf}, 200, 200, 200},
		{"no page token", []string{own, site}, 200, 200, 403},
		{"empty page token", []string{own, site, web.HeaderCSRF + ": "}, 200, 200, 403},
		{"wrong page token", []string{own, site, csrf[:len(csrf)-1]}, 200, 200, 403},
		{"cross site", []string{"Sec-Fetch-Site: cross-site", csrf}, 403, 403, 403},
		{"cross site with own origin", []string{"Sec-Fetch-Site: cross-site", own, csrf}, 403, 403, 403},
		{"another port", []string{"Sec-Fetch-Site: same-site", csrf}, 403, 403, 403},
		{"another port, origin", []string{"Origin: http://127.0.0.1:1", csrf}, 403, 403, 403},
		{"another scheme", []string{"Origin: https://" + s.addr, csrf}, 403, 403, 403},
		{"another name of us", []string{"Origin: http://localhost" + s.addr[strings.LastIndex(s.addr, ":"):], csrf}, 403, 403,
			403},
		{"null", []string{"Origin: null", csrf}, 403, 403, 403},
		{"null, same origin", []string{"Origin: null", site, csrf}, 403, 403, 403},
		{"evil", []string{"Origin: http://evil.example", csrf}, 403, 403, 403},
		{"evil behind us", []string{"Origin: http://" + s.addr + ".evil.example", csrf}, 403, 403, 403},
		{"navigation", []string{"Sec-Fetch-Site: none", navigate, csrf}, 200, 200, 403},
		{"none, no navigation", []string{"Sec-Fetch-Site: none", csrf}, 403, 403, 403},
		{"unknown word", []string{"Sec-Fetch-Site: friendly", csrf}, 403, 403, 403},
	} {
		with := append([]string{s.cookie()}, c.headers...)
		for _, r := range []struct {
			method, path string
			want         int
		}{{"GET", "/v1/runs", c.get}, {"GET", "/ui/", c.get}, {"GET", "/v1/events", c.stream}, {"POST", "/v1/runs", c.post},
			{"DELETE", "/v1/runs", c.post}} {
			if a := s.do(r.method, r.path, "", with...); a.Status != r.want {
				t.Errorf("%s: %s %s is %d, want %d (%s)", c.what, r.method, r.path, a.Status, r.want, a.Body)
			}
		}
		// A key needs none of it, and is taken rather than the cookie.
		if a := s.do("POST", "/v1/runs", "", append(with, s.bearer())...); a.Status != 200 {
			t.Errorf("%s, with a key: %d %s", c.what, a.Status, a.Body)
		}
	}
	// Nobody is logged in by a page elsewhere.
	s.do("POST", "/ui/session", "{}", "Origin: http://evil.example").is(t, "login", 403, "origin_not_allowed")
	s.do("POST", "/ui/session", "{}", "Sec-Fetch-Site: cross-site").is(t, "login", 403, "origin_not_allowed")
	s.do("POST", "/ui/session", "{}").is(t, "login without a word where from", 403, "origin_not_allowed")
	s.do("POST", "/ui/session", "{}", own, site).is(t, "login", 200, "")
}

// TestCredential: which credentials let in, and how a refusal looks.
func TestCredential(t *testing.T) {
	s := serve(t, nil,
		web.Route{Method: "GET", Path: "/v1/runs", Scope: access.RunsRead, Handle: ok},
		web.Route{Method: "GET", Path: "/v1/state", Scope: access.StateRead, Handle: ok},
		web.Route{Method: "GET", Path: "/v1/owner", Owner: true, Handle: ok},
		web.Route{Method: "GET", Path: "/healthz", Open: true, Handle: ok},
		web.Route{Method: "GET", Path: "/ui/", Page: true, Handle: ok},
		web.Route{Method: "POST", Path: "/ui/", Page: true, Handle: ok})
	for _, c := range []struct {
		what, path string
		headers    []string
		status     int
		code       string
	}{
		{"none", "/v1/runs", nil, 401, "unauthenticated"},
		{"unknown route", "/v1/nothing", nil, 401, "unauthenticated"},
		{"unknown route with a key", "/v1/nothing", []string{s.bearer()}, 404, "not_found"},
		{"open", "/healthz", nil, 200, ""},
		{"open with a bad key", "/healthz", []string{"Authorization: Bearer x"}, 200, ""},
		{"key", "/v1/runs", []string{"Authorization: Bearer " + s.reader}, 200, ""},
		{"lower case", "/v1/runs", []string{"authorization: bearer " + s.reader}, 200, ""},
		{"basic", "/v1/runs", []string{"Authorization: Basic " + s.reader}, 401, "unauthenticated"},
		{"no scheme", "/v1/runs", []string{"Authorization: " + s.reader}, 401, "unauthenticated"},
		{"key in the URL", "/v1/runs?key=" + s.reader, nil, 401, "unauthenticated"},
		{"key in a cookie", "/v1/runs", []string{strings.Split(s.cookie(), "=")[0] + "=" + s.reader}, 401, "unauthenticated"},
		{"cookie", "/v1/runs", []string{s.cookie()}, 200, ""},
		{"cookie of another name", "/v1/runs", []string{"Cookie: __Host-sluice=" + s.login.Cookie}, 401, "unauthenticated"},
		{"bad key, good cookie", "/v1/runs", []string{"Authorization: Bearer x", s.cookie()}, 401, "unauthenticated"},
		{"no scope", "/v1/state", []string{"Authorization: Bearer " + s.reader}, 403, "forbidden"},
		{"not the owner", "/v1/owner", []string{s.bearer()}, 403, "forbidden"},
		{"owner", "/v1/owner", []string{s.cookie()}, 200, ""},
	} {
		a := s.do("GET", c.path, "", c.headers...)
		a.is(t, c.what, c.status, c.code)
		if got := a.Header.Get("WWW-Authenticate"); (got == "Bearer") != (c.status == 401) {
			t.Errorf("%s: WWW-Authenticate %q", c.what, got)
		}
		if strings.Contains(a.Body, s.reader) || strings.Contains(a.Body, s.login.Cookie) {
			t.Errorf("%s: the credential is in the answer", c.what)
		}
	}
	if a := s.do("GET", "/v1/state", "",
		"Authorization: Bearer "+s.reader); a.Error.Details["scopeRequired"] != "state:read" {
		t.Errorf("details %v", a.Error.Details)
	}
	// People are sent to where they can log in.
	if a := s.do("GET", "/ui/", ""); a.Status != 303 || a.Header.Get("Location") != "/ui/login" {
		t.Errorf("page: %d to %q", a.Status, a.Header.Get("Location"))
	}
	if a := s.do("GET", "/ui/", "", "HX-Request: true"); a.Status != 401 || a.Header.Get("HX-Redirect") != "" {
		t.Errorf("fragment: %d", a.Status)
	}
	s.do("POST", "/ui/", "").is(t, "page", 401, "unauthenticated")
	s.clock.add(8 * 24 * time.Hour)
	s.do("GET", "/v1/runs", "", s.cookie()).is(t, "old session", 401, "unauthenticated")
}

// TestNoCORS: there is no header of it, whatever is asked; a preflight is 405.
func TestNoCORS(t *testing.T) {
	s := serve(t, nil, web.Route{Method: "POST", Path: "/v1/runs", Scope: access.RunsCreate, Handle: ok},
		web.Route{Method: "GET", Path: "/v1/runs", Scope: access.RunsRead, Handle: ok})
	for _, path := range []string{"/v1/runs", "/", "/v1/nothing", "/ui/x"} {
		for _, method := range []string{"OPTIONS", "GET", "POST"} {
			a := s.do(method, path, "", "Origin: http://evil.example", "Access-Control-Request-Method: POST",
				"Access-Control-Request-Headers: authorization", s.bearer())
			for name := range a.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s: %s", method, path, name)
				}
			}
			if method == "OPTIONS" {
				a.is(t, path, 405, "method_not_allowed")
			}
		}
	}
	if a := s.do("OPTIONS", "/v1/runs", ""); a.Header.Get("Allow") != "POST, GET, HEAD" {
		t.Errorf("Allow %q", a.Header.Get("Allow"))
	}
}
