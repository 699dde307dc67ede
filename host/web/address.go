package web

import (
	"net"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// locate determines where a request comes from. Forwarding headers count only on connections of a
// listed proxy; of a chain of addresses the last one that is not a proxy counts, since the client
// could write anything before it.
func (r *request) locate(c *fiber.Ctx) {
	ctx := c.Context()
	r.https = ctx.IsTLS()
	switch at := ctx.RemoteAddr().(type) {
	case *net.UnixAddr:
		r.socket = true
		return
	case *net.TCPAddr:
		r.address = at.AddrPort().Addr().Unmap()
	}
	if !r.app.proxy(r.address) {
		return
	}
	r.https = r.https || strings.EqualFold(string(ctx.Request.Header.Peek(fiber.HeaderXForwardedProto)), "https")
	chain := strings.Split(string(ctx.Request.Header.Peek(fiber.HeaderXForwardedFor)), ",")
	for i := len(chain) - 1; i >= 0; i-- {
		at, err := netip.ParseAddr(strings.TrimSpace(chain[i]))
		if err != nil {
			return
		}
		if r.address = at.Unmap(); !r.app.proxy(r.address) {
			return
		}
	}
}

func (a *App) proxy(at netip.Addr) bool {
	for _, p := range a.o.Proxies {
		if p.Contains(at) {
			return true
		}
	}
	return false
}

// addressName returns the name of an address for rate limits: for IPv6 the /64, which is what one
// client has.
func addressName(at netip.Addr) string {
	if at.Is6() {
		if p, err := at.Prefix(64); err == nil {
			return p.String()
		}
	}
	return at.String()
}

func addressText(at netip.Addr) string {
	if !at.IsValid() {
		return ""
	}
	return at.String()
}
