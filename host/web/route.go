package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/sluicehost/sluice/host/access"
)

// A Route is a method and a path with its access rules. The API's descriptions and the access tests
// are generated from the table of routes.
type Route struct {
	Method string
	// Path is a template such as /v1/runs/:runId. Parameters are whole segments. A path that ends
	// in /* matches everything below it.
	Path string
	// Verb follows the last segment after a colon: pause in /v1/runs/:runId:pause.
	Verb string

	// Scope is required of the principal; "" accepts any principal.
	Scope access.Scope
	// Open routes need no credential. Principal is nil then, even if one was sent.
	Open bool
	// Owner routes are for the owner only, by session or local socket; a key is 403.
	Owner bool
	// Assistant routes are for assistants only, each by its own token, which opens nothing else; or
	// for the owner at the local socket, who names one in HeaderAssistant.
	Assistant bool
	// Whole routes concern every connection at once. Keys limited to some connections, and test
	// keys, are 403.
	Whole bool
	// Keyed routes accept an Idempotency-Key. See SlotOf.
	Keyed bool
	// Upload routes accept bodies of up to 64 MiB that are not JSON; all others 1 MiB of JSON.
	Upload bool
	// Stream routes answer with Stream; HEAD is 405.
	Stream bool
	// Page routes are for people. Without a session they redirect to /ui/login, and refusals go
	// through Options.ErrorPage.
	Page bool

	Handle fiber.Handler
}

// Template returns the path with its verb, as in logs and descriptions.
func (r *Route) Template() string {
	if r.Verb == "" {
		return r.Path
	}
	return r.Path + ":" + r.Verb
}

// Add registers routes. It must be called before the App serves; an invalid route panics. Routes
// with verbs are matched before those without, in whatever order they were added; a literal
// template is matched before one with parameters if it was added first.
func (a *App) Add(routes ...Route) {
	for _, r := range routes {
		a.check(r)
		a.routes = append(a.routes, r)
	}
}

func (a *App) check(r Route) {
	at := func(format string, args ...any) {
		panic(fmt.Sprintf("route %s %s: ", r.Method, r.Template()) + fmt.Sprintf(format, args...))
	}
	switch {
	case a.built.Load():
		at("added after serving began")
	case r.Handle == nil:
		at("no handler")
	case !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, r.Method):
		at("no such method")
	case !strings.HasPrefix(r.Path, "/") || strings.Contains(r.Verb, "/"):
		at("path")
	case r.Assistant && (r.Open || r.Owner || r.Scope != "" || r.Keyed):
		at("is for assistants, and for others")
	case r.Open && (r.Scope != "" || r.Owner || r.Whole):
		at("open, and wants a principal")
	case r.Keyed && (r.Method == "GET" || r.Open || r.Stream):
		at("cannot be keyed")
	case r.Stream && r.Method != "GET":
		at("streams are GET")
	case r.Scope != "" && !access.Everything.Has(r.Scope):
		at("no such scope")
	}
	for _, other := range a.routes {
		if other.Method == r.Method && other.Template() == r.Template() {
			at("twice")
		}
	}
}

// Routes returns the routes in the order of adding.
func (a *App) Routes() []Route { return slices.Clone(a.routes) }

// build registers the routes with Fiber: verbs first, since a parameter would swallow the colon,
// and HEAD before GET.
func (a *App) build() {
	a.built.Store(true)
	for _, verbs := range []bool{true, false} {
		for i := range a.routes {
			r := &a.routes[i]
			if (r.Verb != "") != verbs {
				continue
			}
			path := r.Path
			if verbs {
				path += `\:` + r.Verb
			}
			handle := a.route(r)
			if r.Method == fiber.MethodGet {
				if r.Stream {
					a.fiber.Add(fiber.MethodHead, path, a.noHead(r))
				} else {
					a.fiber.Add(fiber.MethodHead, path, handle)
				}
			}
			a.fiber.Add(r.Method, path, handle)
		}
	}
	a.fiber.Handler() // initialises Fiber
	inner := a.fiber.Server().Handler
	a.fiber.Server().Handler = func(ctx *fasthttp.RequestCtx) { a.outer(ctx, inner) }
	for _, r := range a.routes {
		if rest, ok := strings.CutPrefix(r.Path, "/v1/"); ok {
			root, _, _ := strings.Cut(rest, "/")
			a.roots[root] = true
		}
	}
}
