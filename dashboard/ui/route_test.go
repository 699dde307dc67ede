package ui_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/dashboard/web"
)

// concrete fills the parameters of a template.
func concrete(template string) string {
	return regexp.MustCompile(`:[A-Za-z]+`).ReplaceAllString(template, "x1")
}

// TestEveryRouteWantsASession: nothing but the login page and the assets answers
// without one (A40), nothing is changed without the page token (A34), and nothing
// by another site (A35, S97).
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
		a := s.send(r.Method, path, "{}", "Content-Type", "application/json", "Sec-Fetch-Site", "same-origin", "Origin", s.base)
		switch {
		case r.Page && (a.status != 303 || a.header.Get("Location") != "/ui/login"):
			t.Errorf("%s %s without a session: %d, want a way to the login", r.Method, path, a.status)
		case !r.Page && a.status != 401:
			t.Errorf("%s %s without a session: %d, want 401", r.Method, path, a.status)
		}
		elsewhere := []string{"Cookie", s.cookie, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example", web.HeaderCSRF, s.session.CSRFToken, "Content-Type", "application/json"}
		if a := s.send(r.Method, path, "{}", elsewhere...); a.status != 403 {
			t.Errorf("%s %s from another site: %d, want 403", r.Method, path, a.status)
		}
		if r.Method == "GET" {
			continue
		}
		for _, token := range []string{"", "wrong", s.session.CSRFToken + "x"} {
			if a := s.send(r.Method, path, "{}", append(own, "Content-Type", "application/json", web.HeaderCSRF, token)...); a.status != 403 {
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

// TestHeadersOfPages is A38 for every page, the login and the error page among
// them.
func TestHeadersOfPages(t *testing.T) {
	s := open(t)
	for _, path := range []string{"/ui/", "/ui/login", "/ui/inbox", "/ui/runs", "/ui/records", "/ui/connectors", "/ui/schedules", "/ui/keys",
		"/ui/audit", "/ui/settings", "/ui/connections/new", "/ui/runs/nothing", "/ui/connections/nothing"} {
		a := s.get(path)
		if strings.HasSuffix(path, "nothing") != (a.status == 404) {
			t.Errorf("%s: %d", path, a.status)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": web.ContentSecurityPolicy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
			"Content-Type": "text/html; charset=utf-8",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	for _, want := range []string{"script-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'", "default-src 'none'"} {
		if !strings.Contains(web.ContentSecurityPolicy, want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
}

// TestTokenIsInPagesOnly: the page token is in a page with a session, and in no
// asset, login or error page (A34).
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
