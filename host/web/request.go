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

// A request is what is known of one, beside its Ctx. All of it is copied.
type request struct {
	app       *App
	id        string
	began     time.Time
	method    string
	path      string     // as sent, undecoded, without query
	address   netip.Addr // invalid for the local socket
	socket    bool
	https     bool
	route     *Route
	principal *access.Principal
	session   access.Session // of the cookie that was used
	slot      *access.Slot
	body      []byte
	bodyRead  bool
	streaming bool
	uploading bool // it has a place among App.uploads
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
		r.method = "?" // it goes to the log
	}
	r.id = access.NewID("req_", r.began)
	r.locate(c)
	c.Locals(requestKey{}, r)
	return r
}

// RequestID returns the id that the answer carries.
func RequestID(c *fiber.Ctx) string { return requestOf(c).id }

// Principal returns who asks; nil on an open route.
func Principal(c *fiber.Ctx) *access.Principal { return requestOf(c).principal }

// Who returns the principal as services know them. A request's texts are parts of a
// buffer that is used again, so they are copied.
func Who(c *fiber.Ctx) host.Principal {
	r := requestOf(c)
	out := host.Principal{ID: "token", Transport: access.REST, RequestID: r.id, Address: addressText(r.address)}
	if p := r.principal; p != nil {
		out = host.Principal{ID: p.ID, Transport: p.Transport, RequestID: p.RequestID, Address: p.Address}
	}
	out.ID, out.RequestID = strings.Clone(out.ID), strings.Clone(out.RequestID)
	return out
}

// Session returns the owner session of a request that came with its cookie; the zero
// Session otherwise. Pages need its CSRF token.
func Session(c *fiber.Ctx) access.Session { return requestOf(c).session }

// SlotOf returns the slot of a request with an Idempotency-Key, nil for one without;
// a nil Slot's methods do nothing. A handler passes its Writes to the commit of
// the effect and then answers the same with JSON; for any other handler the
// App keeps the answer itself.
func SlotOf(c *fiber.Ctx) *access.Slot { return requestOf(c).slot }

// Secure reports whether the client speaks TLS, to us or to a listed proxy.
func Secure(c *fiber.Ctx) bool { return requestOf(c).https }
