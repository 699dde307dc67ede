package web

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
)

// A request is what is known of a request beside its Ctx. Everything in it is a copy.
type request struct {
	app       *App
	id        string
	began     time.Time
	method    string
	path      string     // as sent, undecoded, without the query
	address   netip.Addr // invalid for the local socket
	socket    bool
	https     bool
	route     *Route
	principal *access.Principal
	session   access.Session // of the cookie, if one was used
	slot      *access.Slot
	body      []byte
	bodyRead  bool
	streaming bool
	uploading bool // holds a place in App.uploads
}

type requestKey struct{}

// requestOf returns the state of a request. Every request has one: enter made it.
func requestOf(c *fiber.Ctx) *request {
	r, _ := c.Locals(requestKey{}).(*request)
	return r
}

func (a *App) request(c *fiber.Ctx) *request {
	if r := requestOf(c); r != nil {
		return r
	}
	r := &request{app: a, began: a.o.Now(), method: strings.Clone(c.Method()), path: strings.Clone(c.Path())}
	if !slices.Contains(fiber.DefaultMethods, r.method) {
		r.method = "?" // it is logged
	}
	r.id = access.NewID("req_", r.began)
	r.locate(c)
	c.Locals(requestKey{}, r)
	return r
}

// RequestID returns the id in the answer's headers.
func RequestID(c *fiber.Ctx) string { return requestOf(c).id }

// Principal returns the authenticated principal, or nil on an open route.
func Principal(c *fiber.Ctx) *access.Principal { return requestOf(c).principal }

// Who returns the principal in the form of services. Its texts are copied, since a request's buffer
// is reused.
func Who(c *fiber.Ctx) host.Principal {
	r := requestOf(c)
	out := host.Principal{ID: "token", Transport: access.REST, RequestID: r.id, Address: addressText(r.address)}
	if p := r.principal; p != nil {
		out = host.Principal{ID: p.ID, Transport: p.Transport, RequestID: p.RequestID, Address: p.Address}
	}
	out.ID, out.RequestID = strings.Clone(out.ID), strings.Clone(out.RequestID)
	return out
}

// Session returns the owner session of a request with a cookie, otherwise the zero Session. Pages
// need its CSRF token.
func Session(c *fiber.Ctx) access.Session { return requestOf(c).session }

// SlotOf returns the slot of a request with an Idempotency-Key, or nil; methods of a nil Slot do
// nothing. A handler passes the slot's Writes to the commit of the effect and answers the same with
// JSON. For other handlers the App stores the answer.
func SlotOf(c *fiber.Ctx) *access.Slot { return requestOf(c).slot }

// Secure reports whether the client speaks TLS, to us or to a listed proxy.
func Secure(c *fiber.Ctx) bool { return requestOf(c).https }
