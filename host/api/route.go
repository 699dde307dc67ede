package api

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/web"
)

// A route is a row of the API: what web needs to serve it, and what describes it. Every route is
// described.
type route struct {
	web.Route
	see     string // section of docs/spec, as FILE#ANCHOR
	summary string
	query   []parameter
	headers []string // supported ones, beside Authorization and Idempotency-Key
	body    any      // zero value of what Body reads; nil: no body
	form    []string // parts of a multipart body instead
	answer  any      // zero value of the answer; nil: none
	status  int      // of success; 0 is 200, or 204 without an answer
	also    []int    // other success statuses with the same answer
	media   string   // of an answer that is not JSON; comma-separated
	codes   []string // errors beside those of every route
	// elsewhere means that host/web serves the route and it is only described here.
	elsewhere bool
}

// documented sets the section of docs/spec for rows that have none.
func documented(see string, table []route) []route {
	for i := range table {
		if table[i].see == "" {
			table[i].see = see
		}
	}
	return table
}

// A parameter is a query parameter.
type parameter struct {
	name, typ, text string
	words           []string // the allowed values
	repeat          bool
}

// paging has the parameters of every list.
var paging = []parameter{
	{name: "limit", typ: "integer", text: "Entries on a page."},
	{name: "cursor", typ: "string", text: "nextCursor of the page before."},
}

// strict returns the route with a handler that refuses unknown query parameters, since a misspelled
// one would select something unintended.
func (r *route) strict() web.Route {
	var names []string
	for _, p := range r.query {
		names = append(names, p.name)
	}
	out := r.Route
	out.Handle = func(c *fiber.Ctx) error {
		if err := web.QueryOf(c).Only(names); err != nil {
			return err
		}
		return r.Handle(c)
	}
	return out
}

func (r *route) success() int {
	switch {
	case r.status != 0:
		return r.status
	case r.answer == nil && r.media == "":
		return 204
	}
	return 200
}

// path returns the template in the form of OpenAPI: /v1/runs/{runId}:pause.
func (r *route) path() string {
	parts := strings.Split(r.Route.Template(), "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, ":"); ok {
			name, verb, hasVerb := strings.Cut(name, ":")
			parts[i] = "{" + name + "}"
			if hasVerb {
				parts[i] += ":" + verb
			}
		}
	}
	return strings.Join(parts, "/")
}

// parameters returns the names in the path, in order.
func (r *route) parameters() []string {
	var names []string
	for p := range strings.SplitSeq(r.path(), "/") {
		if rest, ok := strings.CutPrefix(p, "{"); ok {
			name, _, _ := strings.Cut(rest, "}")
			names = append(names, name)
		}
	}
	return names
}

// operation returns the operationId: the method and the words of the path.
func (r *route) operation() string {
	words := strings.FieldsFunc(r.path(), func(c rune) bool { return strings.ContainsRune("/{}:.-_", c) })
	words = slices.DeleteFunc(words, func(w string) bool { return w == "v1" })
	id := strings.ToLower(r.Method)
	for _, w := range words {
		id += strings.ToUpper(w[:1]) + w[1:]
	}
	return id
}
