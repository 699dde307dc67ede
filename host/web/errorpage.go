package web

import (
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// loginPage is where a session begins, and maxBack bounds the address that it leads
// back to.
const (
	loginPage = "/ui/login"
	maxBack   = 1024
)

// errorPage shows a refusal to a person, if it can.
func (a *App) errorPage(c *fiber.Ctx, p *Problem) bool {
	if p.Status == fiber.StatusUnauthorized && safe(c) {
		if c.Get("HX-Request") == "true" { // a fragment: the page around it says so
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

// loginFor returns the login page, with the page that was asked for. Its script goes
// back there, and only to pages below /ui/ of this very origin.
func loginFor(c *fiber.Ctx) string {
	back := string(c.Request().URI().RequestURI())
	if back == "/ui/" || len(back) > maxBack || !strings.HasPrefix(back, "/ui/") {
		return loginPage
	}
	return loginPage + "?next=" + url.QueryEscape(back)
}

// pageWanted reports whether a person looks at the answer of a route that is no
// page, or of none: everything below /ui/ that a script did not ask for, and what a
// browser opens elsewhere outside of the API.
func pageWanted(c *fiber.Ctx, r *request) bool {
	if !forPeople(c) || r.route != nil && r.route.Stream {
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

// forPeople reports whether nothing says that a script reads the answer.
func forPeople(c *fiber.Ctx) bool {
	mode := c.Get("Sec-Fetch-Mode")
	return safe(c) && c.Get("HX-Request") == "" && (mode == "" || mode == "navigate")
}

// opened reports whether a browser shows the answer.
func opened(c *fiber.Ctx) bool {
	return c.Get("Sec-Fetch-Mode") == "navigate" || strings.Contains(c.Get(fiber.HeaderAccept), "text/html")
}
