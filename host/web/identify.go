package web

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/access"
)

// identify finds out who asks, and takes from the bucket of a key. A key wins
// over a cookie, which is then not looked at, and no key falls back to a cookie.
// It is done once for a request.
func (a *App) identify(c *fiber.Ctx, r *request) error {
	if r.route != nil && r.route.Open {
		if err := a.openRate(c, r); err != nil {
			return err
		}
		// Nobody is logged in yet, but a page elsewhere shall not log somebody in.
		return sameOriginIfUI(c, r)
	}
	if r.principal != nil {
		return nil
	}
	if r.route != nil && r.route.Assistant {
		return a.byAssistant(c, r)
	}
	if header := c.Get(fiber.HeaderAuthorization); header != "" {
		return a.byKey(c, r, header)
	}
	if r.socket {
		return a.bySocket(c, r)
	}
	cookie := strings.Clone(c.Cookies(cookieName(c, r)))
	if cookie == "" {
		return access.ErrUnauthenticated
	}
	return a.byCookie(c, r, cookie)
}

func (a *App) byKey(c *fiber.Ctx, r *request, header string) error {
	scheme, key, _ := strings.Cut(header, " ")
	err := access.ErrUnauthenticated
	if strings.EqualFold(scheme, "Bearer") {
		var p *access.Principal
		if p, err = a.o.Access.Keys.Authenticate(Context(c), key); err == nil {
			if err := a.o.Access.PerKey.Take(p.ID); err != nil {
				return err
			}
			return r.setPrincipal(p)
		}
	}
	// A wrong key counts for its address; a right one never waits for others there.
	if unauthenticated(err) && !r.socket {
		if err := a.o.Access.PerAddress.Take(addressName(r.address)); err != nil {
			return err
		}
	}
	return err
}

// HeaderAssistant names the assistant that the owner at the local socket stands in for.
const HeaderAssistant = "Sluice-Assistant"

// byAssistant lets an assistant in. Its client is a program: what a browser sends on behalf
// of a page of somebody else is refused whatever token comes with it.
func (a *App) byAssistant(c *fiber.Ctx, r *request) error {
	if err := sameOrigin(c, r, false); err != nil {
		return err
	}
	if a.o.Assistants == nil {
		return access.ErrUnauthenticated
	}
	header, name := c.Get(fiber.HeaderAuthorization), ""
	var err error
	if header == "" && r.socket {
		if err := a.bySocket(c, r); err != nil {
			return err
		}
		name = strings.Clone(c.Get(HeaderAssistant))
		err = a.o.Assistants.KnownAssistant(name)
	} else {
		scheme, token, _ := strings.Cut(header, " ")
		if err = access.ErrUnauthenticated; strings.EqualFold(scheme, "Bearer") {
			name, err = a.o.Assistants.AuthenticateAssistant(token)
		}
	}
	if err != nil {
		if header != "" && unauthenticated(err) && !r.socket { // without a header addressRate did
			if err := a.o.Access.PerAddress.Take(addressName(r.address)); err != nil {
				return err
			}
		}
		return err
	}
	p := access.OfAssistant(name)
	if err := a.o.Access.PerKey.Take(p.ID); err != nil {
		return err
	}
	return r.setPrincipal(p)
}

// bySocket lets the owner in: nobody else can open the socket. A proxy that hands
// others through would be the owner's mistake; its headers, and those that only
// browsers send, give it away.
func (a *App) bySocket(c *fiber.Ctx, r *request) error {
	for _, h := range []string{fiber.HeaderOrigin, headerSite, fiber.HeaderCookie, fiber.HeaderForwarded, fiber.HeaderXForwardedFor,
		fiber.HeaderXForwardedHost, fiber.HeaderXForwardedProto, "X-Real-Ip", fiber.HeaderVia} {
		if len(c.Request().Header.Peek(h)) > 0 {
			return NewProblem(0, "origin_not_allowed", "The local socket is for programs of the owner, not for proxies and browsers. Use the network address.")
		}
	}
	return r.setPrincipal(access.OfSocket(r.id))
}

func (a *App) byCookie(c *fiber.Ctx, r *request, cookie string) error {
	p, session, err := a.o.Access.Sessions.Authenticate(Context(c), cookie)
	if err != nil {
		return err
	}
	stream := r.route != nil && r.route.Stream
	if err := sameOrigin(c, r, stream || !safe(c)); err != nil {
		return err
	}
	if !safe(c) && !session.CSRF(c.Get(HeaderCSRF)) {
		return NewProblem(0, "forbidden", "The page token is missing or old. Load the page again.").
			With("reason", "page_token")
	}
	r.session = session
	return r.setPrincipal(p)
}

func (r *request) setPrincipal(p *access.Principal) error {
	p.RequestID, p.Address = r.id, addressText(r.address)
	r.principal = p
	return nil
}

// tenant is whose answers are kept. There is one.
const tenant = "default"

// partition separates kept answers and cursors of those who see different things.
func (r *request) partition() string {
	if p := r.principal; p != nil && p.Restricted() {
		return tenant + "/" + p.ID
	}
	return tenant
}

// addressRate takes from the bucket of an address, for requests without a key.
func (a *App) addressRate(c *fiber.Ctx, r *request) error {
	if r.socket || c.Get(fiber.HeaderAuthorization) != "" {
		return nil
	}
	return a.o.Access.PerAddress.Take(addressName(r.address))
}

// openRate takes from it for an open route, where no key is looked at: a header
// that nobody reads buys nothing.
func (a *App) openRate(c *fiber.Ctx, r *request) error {
	if r.socket || c.Get(fiber.HeaderAuthorization) == "" {
		return nil // addressRate did
	}
	return a.o.Access.PerAddress.Take(addressName(r.address))
}

func sameOriginIfUI(c *fiber.Ctx, r *request) error {
	if safe(c) || r.socket || !strings.HasPrefix(r.path, "/ui/") {
		return nil
	}
	return sameOrigin(c, r, true)
}

func unauthenticated(err error) bool {
	return errors.Is(err, access.ErrUnauthenticated) || errors.Is(err, access.ErrKeyExpired) || errors.Is(err, access.ErrKeyRevoked)
}

// cookieName returns the name of the session's cookie. Cookies ignore ports, so
// without TLS the port is in the name.
func cookieName(c *fiber.Ctx, r *request) string {
	if r.https {
		return "__Host-sluice"
	}
	port := 0
	if at, ok := c.Context().LocalAddr().(*net.TCPAddr); ok {
		port = at.Port
	}
	return "sluice_" + strconv.Itoa(port)
}

// setSession gives the browser its session's cookie.
func setSession(c *fiber.Ctx, s access.Session) {
	setCookie(c, s.Cookie, s.ExpiresAt)
}

// dropSession takes it away.
func dropSession(c *fiber.Ctx) { setCookie(c, "", time.Unix(1, 0)) }

func setCookie(c *fiber.Ctx, value string, expires time.Time) {
	r := requestOf(c)
	c.Cookie(&fiber.Cookie{Name: cookieName(c, r), Value: value, Path: "/", Expires: expires, HTTPOnly: true,
		Secure: r.https, SameSite: fiber.CookieSameSiteStrictMode})
}

// sessionCookie returns the value of the session's cookie as it was sent, or "" if there is none.
// It may be anything.
func sessionCookie(c *fiber.Ctx) string { return strings.Clone(c.Cookies(cookieName(c, requestOf(c)))) }
