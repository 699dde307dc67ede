package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/sluicehost/sluice/host/access"
)

// A Route is one method of one path, and what it takes to get there. The
// descriptions of the API, and the tests of who may come in, are generated from the
// table of all routes.
type Route struct {
	Method string
	// Path is a template such as /v1/runs/:runId. Parameters are whole segments.
	// A path that ends in /* takes all below it.
	Path string
	// Verb follows the last segment behind a colon: pause in /v1/runs/:runId:pause.
	Verb string

	// Scope that the principal needs; "" is any principal.
	Scope access.Scope
	// Open: answers without a credential. Principal is nil then, also when one
	// was sent.
	Open bool
	// Owner: the owner only, by session or local socket; a key is 403.
	Owner bool
	// Assistant: assistants only, each by its own token, which opens nothing else; or
	// the owner at the local socket, who names one in HeaderAssistant.
	Assistant bool
	// Whole: it is about every connection at once. Keys that are for some, and test
	// keys, are 403.
	Whole bool
	// Keyed: Idempotency-Key is accepted. See SlotOf.
	Keyed bool
	// Upload: bodies that are no JSON may have 64 MiB; all others 1 MiB of JSON.
	Upload bool
	// Stream: the answer is written by Stream; HEAD is 405.
	Stream bool
	// Page: for people. Who is not logged in is sent to /ui/login, and refusals go
	// through Options.ErrorPage.
	Page bool

	Handle fiber.Handler
}

// Template returns the path with its verb, as logs and descriptions show it.
func (r *Route) Template() string {
	if r.Verb == "" {
		return r.Path
	}
	return r.Path + ":" + r.Verb
}

// Add registers routes. It is called before the App serves; a mistake in a route
// is a panic. Routes with verbs are matched before those without, whatever the
// order of adding, and a template that is all literal before one with parameters
// when it was added first.
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

// Routes returns the table, in the order of adding.
func (a *App) Routes() []Route { return slices.Clone(a.routes) }

// build hands the table to Fiber: verbs first, since a parameter would take the
// colon with it, and HEAD before GET.
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
	a.fiber.Handler() // makes Fiber ready
	inner := a.fiber.Server().Handler
	a.fiber.Server().Handler = func(ctx *fasthttp.RequestCtx) { a.outer(ctx, inner) }
	for _, r := range a.routes {
		if rest, ok := strings.CutPrefix(r.Path, "/v1/"); ok {
			root, _, _ := strings.Cut(rest, "/")
			a.roots[root] = true
		}
	}
}
