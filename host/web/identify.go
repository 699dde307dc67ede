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

// identify authenticates a request, once, and takes from the rate limit of its key. A key takes
// precedence over a cookie, which is then ignored; a wrong key never falls back to the cookie.
func (a *App) identify(c *fiber.Ctx, r *request) error {
	if r.route != nil && r.route.Open {
		if err := a.openRate(c, r); err != nil {
			return err
		}
		// nobody is logged in yet, but another site's page must not log somebody in
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
	// A wrong key counts against its address; a valid one is never delayed by others there.
	if unauthenticated(err) && !r.socket {
		if err := a.o.Access.PerAddress.Take(addressName(r.address)); err != nil {
			return err
		}
	}
	return err
}

// HeaderAssistant names the assistant for which the owner acts at the local socket.
const HeaderAssistant = "Sluice-Assistant"

// byAssistant authenticates an assistant. Its client is a program, so requests that a browser sends
// for another site's page are refused whatever token they carry.
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
		err = a.o.Assistants.KnownAssistant(Context(c), name)
	} else {
		scheme, token, _ := strings.Cut(header, " ")
		if err = access.ErrUnauthenticated; strings.EqualFold(scheme, "Bearer") {
			name, err = a.o.Assistants.AuthenticateAssistant(Context(c), token)
		}
	}
	if err != nil {
		if header != "" && unauthenticated(err) && !r.socket { // without a header addressRate has counted it
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

// bySocket authenticates the owner, since nobody else can open the socket. A proxy that passes
// others through is a mistake of the owner; its headers, and those that only browsers send, reveal
// it.
func (a *App) bySocket(c *fiber.Ctx, r *request) error {
	for _, h := range []string{fiber.HeaderOrigin, headerSite, fiber.HeaderCookie, fiber.HeaderForwarded,
		fiber.HeaderXForwardedFor,
		fiber.HeaderXForwardedHost, fiber.HeaderXForwardedProto, "X-Real-Ip", fiber.HeaderVia} {
		if len(c.Request().Header.Peek(h)) > 0 {
			return NewProblem(0, "origin_not_allowed",
				"The local socket is for programs of the owner, not for proxies and browsers. Use the network address.")
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
	if err := sameOrigin(c, r, stream || !isSafeMethod(c)); err != nil {
		return err
	}
	if !isSafeMethod(c) && !session.CSRF(c.Get(HeaderCSRF)) {
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

// tenant identifies whose answers are stored. There is one.
const tenant = "default"

// partition separates stored answers and cursors of principals that see different things.
func (r *request) partition() string {
	if p := r.principal; p != nil && p.Restricted() {
		return tenant + "/" + p.ID
	}
	return tenant
}

// addressRate takes from the rate limit of an address, for requests without a key.
func (a *App) addressRate(c *fiber.Ctx, r *request) error {
	if r.socket || c.Get(fiber.HeaderAuthorization) != "" {
		return nil
	}
	return a.o.Access.PerAddress.Take(addressName(r.address))
}

// openRate does so for open routes, where no key is checked, so sending a header gains nothing.
func (a *App) openRate(c *fiber.Ctx, r *request) error {
	if r.socket || c.Get(fiber.HeaderAuthorization) == "" {
		return nil // addressRate has counted it
	}
	return a.o.Access.PerAddress.Take(addressName(r.address))
}

func sameOriginIfUI(c *fiber.Ctx, r *request) error {
	if isSafeMethod(c) || r.socket || !strings.HasPrefix(r.path, "/ui/") {
		return nil
	}
	return sameOrigin(c, r, true)
}

func unauthenticated(err error) bool {
	return errors.Is(err, access.ErrUnauthenticated) || errors.Is(err, access.ErrKeyExpired) ||
		errors.Is(err, access.ErrKeyRevoked)
}

// cookieName returns the name of the session's cookie. Cookies are shared between ports, so without
// TLS the port that the browser sees is part of the name. It is the same at all hosts behind one address.
func cookieName(c *fiber.Ctx, r *request) string {
	if r.https {
		return "__Host-sluice"
	}
	_, text, _ := net.SplitHostPort(string(c.Request().Host()))
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil { // a name alone is at the port of HTTP
		port = 80
	}
	return "sluice_" + strconv.FormatUint(port, 10)
}

// setSession sets the session's cookie.
func setSession(c *fiber.Ctx, s access.Session) {
	setCookie(c, s.Cookie, s.ExpiresAt)
}

// dropSession deletes the session's cookie.
func dropSession(c *fiber.Ctx) { setCookie(c, "", time.Unix(1, 0)) }

func setCookie(c *fiber.Ctx, value string, expires time.Time) {
	r := requestOf(c)
	c.Cookie(&fiber.Cookie{Name: cookieName(c, r), Value: value, Path: "/", Expires: expires, HTTPOnly: true,
		Secure: r.https, SameSite: fiber.CookieSameSiteStrictMode})
}

// sessionCookie returns the session's cookie as sent, or "" if there is none. It is not validated.
func sessionCookie(c *fiber.Ctx) string { return strings.Clone(c.Cookies(cookieName(c, requestOf(c)))) }
