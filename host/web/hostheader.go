package web

import (
	"strings"

	"github.com/gofiber/fiber/v2"
)

// hostAllowed checks the raw Host header, and the host of a request line that
// has one: both must be on the list (A36, S96). The local socket has no host
// that a page could rebind.
func (a *App) hostAllowed(c *fiber.Ctx, r *request) error {
	if r.socket {
		return nil
	}
	header, line := hostHeader(c)
	if a.hosts[header] && a.hosts[line] {
		return nil
	}
	return NewProblem(0, "host_not_allowed", "This host name is not one that Sluice answers to. Use the address that it printed, or add the name to its configuration.")
}

// hostHeader is the Host header and the host of the request line, which is the same
// unless that has one.
func hostHeader(c *fiber.Ctx) (header, line string) {
	return strings.ToLower(string(c.Request().Header.Host())), strings.ToLower(string(c.Request().Host()))
}
