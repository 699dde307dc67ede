package web

import (
	"strings"

	"github.com/gofiber/fiber/v2"
)

const (
	headerSite = "Sec-Fetch-Site"
	headerMode = "Sec-Fetch-Mode"
	// HeaderCSRF carries the page token.
	HeaderCSRF = "X-Sluice-CSRF"
)

// sameOrigin requires that a request was made by one of our pages. With proof a header has to say
// so; otherwise the absence of such headers suffices.
func sameOrigin(c *fiber.Ctx, r *request, proof bool) error {
	refused := NewProblem(0, "origin_not_allowed", "This request was not made by a page of Sluice.")
	site, origin := c.Get(headerSite), c.Get(fiber.HeaderOrigin)
	switch site {
	case "", "same-origin":
	case "none": // opened by a person
		if c.Method() != fiber.MethodGet && c.Method() != fiber.MethodHead || c.Get(headerMode) != "navigate" {
			return refused
		}
	default:
		return refused
	}
	if origin != "" && origin != r.origin(c) {
		return refused
	}
	if proof && site == "" && origin == "" {
		return refused
	}
	return nil
}

// origin returns this server's origin as the client sees it. The host was checked.
func (r *request) origin(c *fiber.Ctx) string {
	header, _ := hostHeader(c)
	if r.https {
		return "https://" + header
	}
	return "http://" + header
}

func isSafeMethod(c *fiber.Ctx) bool {
	return c.Method() == fiber.MethodGet || c.Method() == fiber.MethodHead
}

// hostAllowed checks the raw Host header and, if there is one, the host of the request line: both
// must be accepted. The local socket has no host that a page could rebind.
func (a *App) hostAllowed(c *fiber.Ctx, r *request) error {
	if r.socket {
		return nil
	}
	header, line := hostHeader(c)
	if a.hosts[header] && a.hosts[line] {
		return nil
	}
	return NewProblem(0, "host_not_allowed",
		"This host name is not one that Sluice answers to. Use the address that it printed, or add the name to its configuration.")
}

// hostHeader returns the Host header and the host of the request line, which equals the header if
// it has none.
func hostHeader(c *fiber.Ctx) (header, line string) {
	return strings.ToLower(string(c.Request().Header.Host())), strings.ToLower(string(c.Request().Host()))
}
