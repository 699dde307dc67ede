package web

import (
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// loginPage is the page where a session begins; maxBack bounds the address to return to.
const (
	loginPage = "/ui/login"
	maxBack   = 1024
)

// errorPage shows a refusal to a person. It reports false if it cannot.
func (a *App) errorPage(c *fiber.Ctx, p *Problem) bool {
	if p.Status == fiber.StatusUnauthorized && isSafeMethod(c) {
		if c.Get("HX-Request") == "true" { // a fragment; the page around it shows the error
			return false
		}
		return c.Redirect(loginFor(c), fiber.StatusSeeOther) == nil
	}
	if a.o.ErrorPage == nil {
		return false
	}
	c.Status(p.Status)
	if err := a.o.ErrorPage(c, p); err != nil {
		c.Response().ResetBody()
		return false
	}
	c.Status(p.Status)
	return true
}

// loginFor returns the login page with the requested page to return to. Its script returns only to
// pages below /ui/ of this origin.
func loginFor(c *fiber.Ctx) string {
	back := string(c.Request().URI().RequestURI())
	if back == "/ui/" || len(back) > maxBack || !strings.HasPrefix(back, "/ui/") {
		return loginPage
	}
	return loginPage + "?next=" + url.QueryEscape(back)
}

// pageWanted reports whether a person sees the answer of a route that is no page, or of no route:
// everything below /ui/ that no script requested, and, outside of the API, what a browser opened.
func pageWanted(c *fiber.Ctx, r *request) bool {
	if !wantsPage(c) || r.route != nil && r.route.Stream {
		return false
	}
	switch first, _, _ := strings.Cut(strings.TrimPrefix(r.path, "/"), "/"); first {
	case "ui":
		return r.route == nil || opened(c)
	case "v1", ".well-known", "healthz", "readyz", "metrics":
		return false // for programs, whoever asks
	}
	return opened(c)
}

// wantsPage reports whether nothing indicates that a script reads the answer.
func wantsPage(c *fiber.Ctx) bool {
	mode := c.Get("Sec-Fetch-Mode")
	return isSafeMethod(c) && c.Get("HX-Request") == "" && (mode == "" || mode == "navigate")
}

// opened reports whether a browser displays the answer.
func opened(c *fiber.Ctx) bool {
	return c.Get("Sec-Fetch-Mode") == "navigate" || strings.Contains(c.Get(fiber.HeaderAccept), "text/html")
}
