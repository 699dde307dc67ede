package api

import (
	"context"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// A lookup finds the connection or run in a path, and refuses what the principal may not know of or
// use. Connections outside a key's list, with everything in them, look as if they did not exist.
type lookup struct {
	connections host.Connections
	runs        store.Runs
}

// connection returns the connection in the path.
func (l lookup) connection(c *fiber.Ctx) (host.Connection, error) {
	id, err := web.ID(c, "connectionId")
	if err != nil {
		return host.Connection{}, err
	}
	p := web.Principal(c)
	if !p.SeesConnection(store.ConnectionID(id)) {
		return host.Connection{}, web.NotFound()
	}
	conn, err := l.connections.Connection(web.Context(c), store.ConnectionID(id))
	if err != nil {
		return conn, err
	}
	return conn, usable(p, conn)
}

func (l lookup) connectionID(c *fiber.Ctx) (store.ConnectionID, error) {
	conn, err := l.connection(c)
	return idOf(conn), err
}

// usable refuses connections that are not in mode test to a test key.
func usable(p *access.Principal, c host.Connection) error {
	if p.Test && c.Mode != access.Test {
		return web.NewProblem(0, "forbidden", "A test key may use only connections in mode test.").With("mode", c.Mode)
	}
	return nil
}

func idOf(c host.Connection) store.ConnectionID { return store.ConnectionID(c.ConnectionID) }

// run returns the run in the path.
func (l lookup) run(c *fiber.Ctx) (store.Run, error) {
	id, err := web.ID(c, "runId")
	if err != nil {
		return store.Run{}, err
	}
	r, err := l.runs.Run(web.Context(c), store.RunID(id))
	if err != nil {
		return r, err
	}
	return r, l.checkVisible(c, r)
}

// checkVisible refuses runs of connections that the principal may not know of or use.
func (l lookup) checkVisible(c *fiber.Ctx, r store.Run) error {
	p := web.Principal(c)
	if !p.SeesConnection(r.ConnectionID) {
		return web.NotFound()
	}
	if !p.Test || conformance(r.ConnectionID) {
		return nil
	}
	conn, err := l.connections.Connection(web.Context(c), r.ConnectionID)
	if err != nil {
		return err
	}
	return usable(p, conn)
}

// conformance reports whether a connection was made for one run of a conformance connector. No
// other ids have this prefix.
func conformance(id store.ConnectionID) bool { return strings.HasPrefix(string(id), "conformance-") }

// A visibility says which connections the principal may know of. It is computed once for an answer
// about many things.
type visibility struct {
	p     *access.Principal
	tests map[store.ConnectionID]bool // connections in mode test; nil unless the key is a test key
}

func (l lookup) visible(c *fiber.Ctx) (visibility, error) {
	v := visibility{p: web.Principal(c)}
	if !v.p.Test {
		return v, nil
	}
	all, err := l.connections.Connections(web.Context(c))
	if err != nil {
		return v, err
	}
	v.tests = map[store.ConnectionID]bool{}
	for _, x := range all {
		if usable(v.p, x) == nil {
			v.tests[idOf(x)] = true
		}
	}
	return v, nil
}

// has reports whether things of a connection are visible.
func (v visibility) has(id store.ConnectionID) bool {
	return v.p.SeesConnection(id) && (v.tests == nil || v.tests[id] || conformance(id))
}

// redact returns a connector without its invisible connections.
func (v visibility) redact(x host.Connector) host.Connector {
	x.Connections = slices.DeleteFunc(append([]host.ConnectionRef{}, x.Connections...), func(r host.ConnectionRef) bool {
		return !v.has(store.ConnectionID(r.ConnectionID))
	})
	return x
}

// listed answers with one page of a list in memory, ordered by id.
func listed[T any](c *fiber.Ctx, page web.Page, all []T, id func(T) string) error {
	slices.SortStableFunc(all, func(x, y T) int { return strings.Compare(id(x), id(y)) })
	from, _ := slices.BinarySearchFunc(all, page.After, func(x T, after string) int {
		if after == "" {
			return 1
		}
		if id(x) <= after {
			return -1
		}
		return 1
	})
	all = all[from:]
	next := ""
	if len(all) > page.Limit {
		all = all[:page.Limit]
		next = id(all[len(all)-1])
	}
	return web.Listed(c, all, next)
}

// visibleIDs returns the connections visible to the caller.
func (l lookup) visibleIDs(ctx context.Context, c *fiber.Ctx) ([]store.ConnectionID, error) {
	in, err := l.visible(c)
	if err != nil {
		return nil, err
	}
	all, err := l.connections.Connections(ctx)
	if err != nil {
		return nil, err
	}
	out := []store.ConnectionID{}
	for _, x := range all {
		if in.has(idOf(x)) {
			out = append(out, idOf(x))
		}
	}
	return out, nil
}
