package web

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/private"
)

// errPanic is the error of a handler that panicked.
var errPanic = errors.New("handler panicked")

// outer runs before Fiber, which answers unknown methods with plain text.
func (a *App) outer(ctx *fasthttp.RequestCtx, inner fasthttp.RequestHandler) {
	if slices.Contains(fiber.DefaultMethods, string(ctx.Method())) {
		inner(ctx)
		return
	}
	c := a.fiber.AcquireCtx(ctx)
	defer a.fiber.ReleaseCtx(c)
	_ = a.frameworkError(c, fiber.ErrBadRequest)
}

// enter is the first step of every request and the last of every answer. It returns nil, since it
// writes refusals itself.
func (a *App) enter(c *fiber.Ctx) error {
	a.listeners.setSilent(c.Context().Conn(), false)
	r := a.request(c)
	headers(c, r)
	err := a.withRecover(c, r, func() error {
		if err := checkFraming(c); err != nil {
			return err
		}
		if err := a.hostAllowed(c, r); err != nil {
			return err
		}
		if c.Method() == fiber.MethodOptions { // no preflight: no other origin is ever allowed
			return a.notAllowed(r.path)
		}
		if err := a.addressRate(c, r); err != nil {
			return err
		}
		if a.draining.Load() && !isSafeMethod(c) {
			return NewProblem(503, "unavailable",
				"The host is stopping: it answers reads until its runs have ended, and changes nothing.")
		}
		err := c.Next()
		if r.route == nil && err != nil {
			return a.unmatched(c, r, err)
		}
		return err
	})
	if err != nil {
		a.fail(c, r, err)
	}
	a.finish(c, r)
	return nil
}

// checkFraming refuses requests that a proxy may frame differently, which would let part of one
// pass for another's request: a body with two lengths (RFC 9112, section 6.3), and a header
// continued on the next line (section 5.2). The connection is closed afterwards, since the body was
// not read.
func checkFraming(c *fiber.Ctx) error {
	h := &c.Request().Header
	raw := append([]byte("\n"), h.RawHeaders()...)
	switch {
	case h.ContentLength() == -1 && bytes.Contains(bytes.ToLower(raw), []byte("\ncontent-length")):
		return NewProblem(400, "validation_error", "The request has both Content-Length and Transfer-Encoding.")
	case bytes.Contains(raw, []byte("\n ")), bytes.Contains(raw, []byte("\n\t")):
		c.Context().SetConnectionClose()
		return NewProblem(400, "validation_error", "A header of the request goes on in the next line; write it in one.")
	}
	return nil
}

// expectContinue answers Expect: 100-continue, so that no client sends a body larger than any route
// accepts.
func expectContinue(ctx *fasthttp.RequestCtx) int {
	if ctx.Request.Header.ContentLength() > MaxUpload {
		return fiber.StatusRequestEntityTooLarge
	}
	return fiber.StatusContinue
}

// withRecover turns a panic into an error after logging its stack.
func (a *App) withRecover(c *fiber.Ctx, r *request, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			a.o.Log.Error("request panicked", slog.String("request", r.id), slog.Any("panic", v),
				slog.String("stack", string(debug.Stack())))
			r.slot.Abandon()
			err = errPanic
		}
	}()
	return f()
}

// finish closes connections that cannot be reused, and writes the access log.
func (a *App) finish(c *fiber.Ctx, r *request) {
	if r.hasUnread(c) {
		c.Context().SetConnectionClose()
	}
	if r.uploading {
		<-a.uploads
	}
	if !r.streaming {
		// WriteTimeout is 0 because of streams, so a reader that stops would keep the answer and
		// the connection for ever.
		n := len(c.Response().Body())
		_ = c.Context().Conn().SetWriteDeadline(time.Now().Add(WriteDeadline + time.Duration(n/slowRequest)*time.Second))
		a.logRequest(r, c.Response().StatusCode())
	}
}

// slowRequest is the minimum read rate of a client, in bytes per second.
const slowRequest = 16 << 10

// logRequest writes the access log: the route's template, but no path, query or headers.
func (a *App) logRequest(r *request, status int) {
	took := a.o.Now().Sub(r.began)
	route, who := "", ""
	if r.route != nil {
		route = r.route.Template()
	}
	if r.principal != nil {
		who = r.principal.ID
	}
	a.o.Log.Info("request", slog.String("method", r.method), slog.String("route", route), slog.Int("status", status),
		slog.Int64("ms", took.Milliseconds()), slog.String("principal", who), slog.String("request", r.id))
	if a.o.Observe != nil {
		a.o.Observe(r.method, route, status, took)
	}
}

// route returns the handler of a route, with its checks in order. See docs/spec/api.md, "API keys
// and scopes".
func (a *App) route(route *Route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		r := requestOf(c)
		if colons(r.path) != colons(route.Template())-strings.Count(route.Path, "/:") {
			return NotFound() // a colon that does not begin a verb of this route
		}
		r.route = route
		if err := a.identify(c, r); err != nil {
			return err
		}
		if err := a.checkAllowed(c, r); err != nil {
			return err
		}
		if route.Keyed {
			return a.idempotent(c, r, route.Handle)
		}
		return route.Handle(c)
	}
}

// noHead answers HEAD for a stream, since a body writer would corrupt the connection.
func (a *App) noHead(route *Route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		r := requestOf(c)
		r.route = route
		if err := a.identify(c, r); err != nil {
			return err
		}
		p := NewProblem(0, "method_not_allowed", "A stream has no HEAD.")
		p.Allow = fiber.MethodGet
		return p
	}
}

// checkAllowed checks the scope.
func (a *App) checkAllowed(c *fiber.Ctx, r *request) error {
	switch {
	case r.route.Open:
		return nil
	case r.route.Owner && r.principal.ID != "owner":
		return NewProblem(0, "forbidden", "Only the owner may do this, with a session.")
	case r.route.Scope != "" && !r.principal.Allows(r.route.Scope):
		if a.o.Denied != nil {
			a.o.Denied(Who(c), string(r.route.Scope))
		}
		return NewProblem(0, "forbidden", "The credential does not have the scope that this needs.").
			With("scopeRequired", r.route.Scope)
	case r.route.Whole && r.principal.Restricted():
		return NewProblem(0, "forbidden", "This is about every connection; the key is for some only.")
	}
	return nil
}

// unmatched answers a request that no route matches.
func (a *App) unmatched(c *fiber.Ctx, r *request, err error) error {
	var frame *fiber.Error
	if !errors.As(err, &frame) {
		return err
	}
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.path, "/"), "/")
	if first == "v1" && rest != "" {
		// Without a credential nobody learns which routes exist.
		if err := a.identify(c, r); err != nil {
			return err
		}
	}
	if first == "ui" && wantsPage(c) {
		// Without a session nobody learns which pages exist.
		if err := a.identify(c, r); err != nil {
			return err
		}
	}
	if root, _, _ := strings.Cut(first, ":"); a.roots[root] {
		return NewProblem(400, "validation_error", "Routes of the API begin with /v1.").With("expected", "/v1/"+root)
	}
	if frame.Code == fiber.StatusMethodNotAllowed && colons(r.path) == 0 {
		return a.notAllowed(r.path)
	}
	return NotFound()
}

// notAllowed returns a 405 with the methods of a path.
func (a *App) notAllowed(path string) *Problem {
	var allow []string
	for i := range a.routes {
		r := &a.routes[i]
		if !covers(r.Template(), path) || slices.Contains(allow, r.Method) {
			continue
		}
		if allow = append(allow, r.Method); r.Method == fiber.MethodGet && !r.Stream {
			allow = append(allow, fiber.MethodHead)
		}
	}
	p := NewProblem(0, "method_not_allowed", "This cannot be done here.")
	p.Allow = strings.Join(allow, ", ")
	return p
}

// covers reports whether a template matches a path.
func covers(template, path string) bool {
	want, have := strings.Split(template, "/"), strings.Split(path, "/")
	for i, w := range want {
		switch {
		case w == "*":
			return len(have) > i
		case i >= len(have):
			return false
		case strings.HasPrefix(w, ":"):
			_, wv, _ := strings.Cut(w[1:], ":")
			h, hv, _ := strings.Cut(have[i], ":")
			if h == "" || wv != hv {
				return false
			}
		case w != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}

func colons(path string) int { return strings.Count(path, ":") }

// fail writes a refusal. Unexpected errors are logged here, once.
func (a *App) fail(c *fiber.Ctx, r *request, err error) {
	p, known := ProblemOf(err)
	if !known && !errors.Is(err, errPanic) {
		a.o.Log.Error("request failed", slog.String("request", r.id), slog.String("error", err.Error()))
		p = misplaced(r.principal, err, p)
	}
	if p.Status >= 500 {
		copied := *p
		copied.Details = map[string]any{}
		for k, v := range p.Details {
			copied.Details[k] = v
		}
		p = copied.With("correlationId", r.id)
	}
	res := c.Response()
	res.ResetBody()
	c.Set(fiber.HeaderCacheControl, "no-store")
	if p.Allow != "" {
		c.Set(fiber.HeaderAllow, p.Allow)
	}
	if p.RetryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	if (r.route != nil && r.route.Page || pageWanted(c, r)) && a.errorPage(c, p) {
		return
	}
	if p.Status == fiber.StatusUnauthorized {
		c.Set(fiber.HeaderWWWAuthenticate, "Bearer")
	}
	if p.Status == fiber.StatusRequestEntityTooLarge {
		c.Context().SetConnectionClose()
	}
	writeProblem(c, p)
}

// misplaced returns the answer to an unexpected error if that is due to what is in the place of a file or directory of
// the host, otherwise p. Only the owner is told of its path.
func misplaced(who *access.Principal, err error, p *Problem) *Problem {
	text := private.Trouble(err)
	switch {
	case text == "":
		return p
	case who == nil || !who.Session() && !who.Local():
		text = "The host cannot use one of its files or directories. Its log says which."
	}
	return unavailable("path_unusable", text)
}

func writeProblem(c *fiber.Ctx, p *Problem) {
	body, err := Encode(struct {
		Error   string         `json:"error"`
		Message string         `json:"message"`
		Details map[string]any `json:"details,omitempty"`
	}{p.Code, p.Message, p.Details})
	if err != nil { // details that cannot be encoded: a bug
		body = fmt.Appendf(nil, `{"error":%q,"message":%q}`, p.Code, p.Message)
	}
	_ = Bytes(c, p.Status, body)
}

// frameworkError answers what never became a request: an invalid request line, or headers that are
// too large.
func (a *App) frameworkError(c *fiber.Ctx, err error) error {
	r := a.request(c)
	headers(c, r)
	a.fail(c, r, err)
	c.Context().SetConnectionClose()
	a.logRequest(r, c.Response().StatusCode())
	return nil
}
