package dashboard_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// concrete fills the parameters of a template.
func concrete(template string) string {
	return regexp.MustCompile(`:[A-Za-z]+`).ReplaceAllString(template, "x1")
}

// TestEveryRouteWantsASession: nothing but the login page and the assets answers
// without one, nothing is changed without the page token, and nothing by another
// site.
func TestEveryRouteWantsASession(t *testing.T) {
	s := open(t)
	own := []string{"Cookie", s.cookie, "Sec-Fetch-Site", "same-origin", "Origin", s.base}
	for _, r := range s.app.Routes() {
		path := concrete(r.Path)
		if r.Open {
			if r.Path != "/ui/login" && r.Path != "/ui/assets/:name" {
				t.Errorf("%s is open", path)
			}
			continue
		}
		a := s.send(r.Method, path, "{}", "Content-Type", "application/json", "Sec-Fetch-Site",
			"same-origin", "Origin", s.base)
		switch {
		case r.Page && (a.status != 303 || a.header.Get("Location") != loginFor(path)):
			t.Errorf("%s %s without a session: %d, want a way to the login", r.Method, path, a.status)
		case !r.Page && a.status != 401:
			t.Errorf("%s %s without a session: %d, want 401", r.Method, path, a.status)
		}
		elsewhere := []string{"Cookie", s.cookie, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example",
			web.HeaderCSRF, s.session.CSRFToken, "Content-Type", "application/json"}
		if a := s.send(r.Method, path, "{}", elsewhere...); a.status != 403 {
			t.Errorf("%s %s from another site: %d, want 403", r.Method, path, a.status)
		}
		if r.Method == "GET" {
			continue
		}
		for _, token := range []string{"", "wrong", s.session.CSRFToken + "x"} {
			if a := s.send(r.Method, path, "{}",
				append(own, "Content-Type", "application/json", web.HeaderCSRF, token)...); a.status != 403 {
				t.Errorf("%s %s with the page token %q: %d, want 403", r.Method, path, token, a.status)
			}
		}
		if r.Upload {
			continue
		}
		form := append(own, web.HeaderCSRF, s.session.CSRFToken, "Content-Type", "application/x-www-form-urlencoded")
		if a := s.send(r.Method, path, "a=b", form...); a.status != 415 && a.status != 404 {
			t.Errorf("%s %s with a form's body: %d, want 415", r.Method, path, a.status)
		}
	}
}

// loginFor is where somebody without a session is sent.
func loginFor(path string) string {
	if path == "/ui/" {
		return "/ui/login"
	}
	return "/ui/login?next=" + url.QueryEscape(path)
}

// TestNoSuchPage: what a person opens answers with a page, whether there is one or
// not, and a script's request with JSON.
func TestNoSuchPage(t *testing.T) {
	s := open(t)
	own := []string{"Cookie", s.cookie, "Sec-Fetch-Site", "same-origin"}
	html := []string{"Accept", "text/html,*/*;q=0.8", "Sec-Fetch-Mode", "navigate"}
	for path, headers := range map[string][]string{
		"/ui/nope": nil, "/ui/runs/": nil, "/ui/runs/run_x/nope": nil, "/ui/a:b": nil, "/ui/runs/run_x/cancel": nil,
		"/ui/runs/run_x/older": html, "/ui/assets/nope.js": html, "/nope": html,
	} {
		a := s.send("GET", path, "", append(own, headers...)...)
		if a.status != 404 && a.status != 405 || a.header.Get("Content-Type") != "text/html; charset=utf-8" ||
			!strings.Contains(a.body, "Go to the overview") {
			t.Errorf("%s: %d %s", path, a.status, a.header.Get("Content-Type"))
		}
	}
	for path, headers := range map[string][]string{
		"/ui/nope": {"HX-Request", "true"}, "/ui/none": {"Sec-Fetch-Mode", "cors"},
		"/ui/runs/run_x/older": {"HX-Request", "true"}, "/nope": nil, "/v1/nope": html,
	} {
		if a := s.send("GET", path, "", append(own, headers...)...); a.status < 400 ||
			a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s for a script: %d %s", path, a.status, a.header.Get("Content-Type"))
		}
	}
	if a := s.send("GET", "/ui/nope", ""); a.status != 303 || a.header.Get("Location") != loginFor("/ui/nope") {
		t.Errorf("a stranger learns which pages there are: %d", a.status)
	}
}

// TestLoginLeadsBack: the way to the login says where from, and nothing that is not
// below /ui/ of this origin.
func TestLoginLeadsBack(t *testing.T) {
	s := open(t)
	for path, want := range map[string]string{
		"/ui/runs?connection=a&status=failed":           loginFor("/ui/runs?connection=a&status=failed"),
		"/ui/record?key=%22%3E%3Cscript%3E":             loginFor("/ui/record?key=%22%3E%3Cscript%3E"),
		"/ui/records?find=" + strings.Repeat("x", 2000): "/ui/login",
	} {
		if a := s.send("GET", path, ""); a.status != 303 || a.header.Get("Location") != want {
			t.Errorf("%.60s leads to %.100s", path, a.header.Get("Location"))
		}
	}
	if a := s.send("GET", "/ui/runs", "", "HX-Request", "true"); a.status != 401 ||
		a.header.Get("HX-Redirect")+a.header.Get("Location") != "" {
		t.Errorf("a fragment takes its page away: %d %v", a.status, a.header)
	}
}

// TestPacked: pages and assets are compressed for who takes that, but not where free
// text of the request stands beside what is nobody else's business.
func TestPacked(t *testing.T) {
	s := open(t)
	s.host.connections = []host.Connection{{ConnectionID: "bank"}}
	s.run("run_1", "bank", store.Event{Type: "run.started", Data: data(map[string]string{"workflowId": "bank"})})
	get := func(path, accept string) answer {
		return s.send("GET", path, "", "Cookie", s.cookie, "Sec-Fetch-Site", "same-origin", "Accept-Encoding", accept)
	}
	unpack := func(a answer) string {
		r, err := gzip.NewReader(strings.NewReader(a.body))
		if err != nil {
			return ""
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	for _, path := range []string{"/ui/", "/ui/runs", "/ui/runs/run_1", "/ui/runs?connection=bank&status=active",
		"/ui/settings", "/ui/assets/sluice.js", "/ui/assets/uPlot.iife.min.js"} {
		plain, packed := get(path, "identity"), get(path, "br, gzip;q=0.8")
		if packed.header.Get("Content-Encoding") != "gzip" || packed.header.Get("Vary") != "Accept-Encoding" ||
			len(packed.body) > len(plain.body)*2/3 || unpack(packed) != plain.body {
			t.Errorf("%s: %d bytes of %d, %v", path, len(packed.body), len(plain.body), packed.header)
		}
		if plain.header.Get("Content-Encoding") != "" || plain.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s, plain: %v", path, plain.header)
		}
		for _, accept := range []string{"gzip;q=0", "br", "*;q=0", "gzip;q=x"} {
			if a := get(path, accept); a.header.Get("Content-Encoding") != "" {
				t.Errorf("%s is compressed for %q", path, accept)
			}
		}
	}
	for _, path := range []string{"/ui/records?connection=bank&find=guess", "/ui/runs?connection=guess",
		"/ui/runs?before=guess", "/ui/audit?actor=guess", "/ui/?x=guess"} {
		if a := get(path, "gzip"); a.status != 200 || a.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d, repeats a guess and is compressed", path, a.status)
		}
	}
	for _, path := range []string{"/ui/live/runs", "/ui/live/badge"} {
		q, _ := http.NewRequestWithContext(t.Context(), "GET", s.base+path, nil)
		q.Header = http.Header{"Cookie": {s.cookie}, "Sec-Fetch-Site": {"same-origin"}, "Accept-Encoding": {"gzip"}}
		res, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.Header.Get("Content-Encoding") != "" {
			t.Errorf("the stream %s is compressed", path)
		}
	}
}

// TestHeadersOfPages: the headers of every page, the login and the error page among
// them.
func TestHeadersOfPages(t *testing.T) {
	s := open(t)
	for _, path := range []string{"/ui/", "/ui/login", "/ui/inbox", "/ui/runs", "/ui/data", "/ui/data/sql",
		"/ui/data/destinations", "/ui/assistants", "/ui/records", "/ui/connectors", "/ui/schedules", "/ui/keys",
		"/ui/audit", "/ui/settings", "/ui/connectors", "/ui/runs/nothing", "/ui/connections/nothing"} {
		a := s.get(path)
		if strings.HasSuffix(path, "nothing") != (a.status == 404) {
			t.Errorf("%s: %d", path, a.status)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": web.ContentSecurityPolicy, "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
			"Content-Type": "text/html; charset=utf-8",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	for _, want := range []string{"script-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'",
		"default-src 'none'"} {
		if !strings.Contains(web.ContentSecurityPolicy, want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
}

// TestTokenIsInPagesOnly: the page token is in a page with a session, and in no
// asset, login or error page.
func TestTokenIsInPagesOnly(t *testing.T) {
	s := open(t)
	if !strings.Contains(s.page("/ui/"), s.session.CSRFToken) {
		t.Error("the overview lacks the page token")
	}
	for _, path := range []string{"/ui/login", "/ui/runs/nothing", "/ui/assets/sluice.js"} {
		if strings.Contains(s.get(path).body, s.session.CSRFToken) {
			t.Errorf("%s has the page token", path)
		}
	}
}
