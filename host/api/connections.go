package api

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// connectionAPI has the routes of connections.
type connectionAPI struct {
	find        lookup
	connections host.Connections
}

func (a *connectionAPI) routes() []route {
	one := "/v1/connections/:connectionId"
	return documented("api.md#connections-grants-bindings-secrets", []route{
		{Route: web.Route{Method: "POST", Path: "/v1/connections", Scope: access.ConnectionsManage, Keyed: true,
			Handle: a.createConnection},
			summary: "Make a connection of an installed connector", body: host.NewConnection{},
			answer: host.Connection{}, status: 201,
			codes: []string{"conflict", "not_found"}},
		{Route: web.Route{Method: "GET", Path: "/v1/connections", Scope: access.ConnectionsRead,
			Handle: a.listConnections},
			summary: "List connections, each with its schedule", answer: web.List[host.Connection]{},
			query: append([]parameter{
				{name: "connectorName", typ: "string", text: "Only those of a connector."},
				{name: "ready", typ: "boolean", text: "Only those that could start now, or could not."},
			}, paging...)},
		{Route: web.Route{Method: "GET", Path: one, Scope: access.ConnectionsRead,
			Handle: found(a.find.connection)},
			summary: "One connection", answer: host.Connection{}},
		{Route: web.Route{Method: "PATCH", Path: one, Scope: access.ConnectionsManage, Keyed: true,
			Handle: a.changeConnection},
			summary: "Change a connection; it applies to the next run", headers: []string{"If-Match"},
			body: host.ChangeConnection{}, answer: host.Connection{}, codes: []string{"precondition_failed"}},
		{Route: web.Route{Method: "DELETE", Path: one, Scope: access.ConnectionsManage, Keyed: true,
			Handle: a.deleteConnection},
			summary: "Remove a connection; keep or erase what it collected",
			query: []parameter{{name: "data", typ: "string", text: "What becomes of the data; keep by default.",
				words: []string{"keep", "erase"}}},
			codes: []string{"run_already_active"}},
	})
}

func (a *connectionAPI) createConnection(c *fiber.Ctx) error {
	var q host.NewConnection
	if err := web.Body(c, &q); err != nil {
		return err
	}
	p := web.Principal(c)
	switch id := q.ConnectionID; {
	case id == "" && !p.SeesConnection(store.ConnectionID(q.ConnectorName)),
		id != "" && !p.SeesConnection(store.ConnectionID(id)):
		return web.NewProblem(0, "forbidden", "This key is for certain connections and cannot make others.")
	case p.Test && q.Mode != access.Test:
		return web.NewProblem(0, "forbidden", "A test key can make only connections in mode test.")
	}
	conn, err := a.connections.CreateConnection(web.Context(c), q)
	if err != nil {
		return err
	}
	return web.Created(c, "/v1/connections/"+conn.ConnectionID, conn)
}

func (a *connectionAPI) listConnections(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	q := web.QueryOf(c)
	name, only, ready := q.Text("connectorName", 128), q.Has("ready"), q.Bool("ready", false)
	if err := q.Err(); err != nil {
		return err
	}
	all, err := a.connections.Connections(web.Context(c))
	if err != nil {
		return err
	}
	p := web.Principal(c)
	all = slices.DeleteFunc(all, func(x host.Connection) bool {
		return !p.SeesConnection(store.ConnectionID(x.ConnectionID)) || usable(p, x) != nil ||
			name != "" && x.ConnectorName != name || only && x.Ready != ready
	})
	return listed(c, page, all, func(x host.Connection) string { return x.ConnectionID })
}

func (a *connectionAPI) changeConnection(c *fiber.Ctx) error {
	id, err := a.find.connectionID(c)
	if err != nil {
		return err
	}
	var q host.ChangeConnection
	if err := web.Body(c, &q); err != nil {
		return err
	}
	revision, err := web.IfMatch(c)
	if err != nil {
		return err
	}
	conn, err := a.connections.ChangeConnection(web.Context(c), id, q, revision)
	return web.Answer(c, conn, err)
}

func (a *connectionAPI) deleteConnection(c *fiber.Ctx) error {
	id, err := a.find.connectionID(c)
	if err != nil {
		return err
	}
	q := web.QueryOf(c)
	data := q.OneOf("data", "keep", "keep", "erase")
	if err := q.Err(); err != nil {
		return err
	}
	return web.Done(c, a.connections.DeleteConnection(web.Context(c), id, data == "erase"))
}
