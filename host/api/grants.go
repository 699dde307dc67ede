package api

import (
	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// grants is what a connection asks for and was given.
type grants struct {
	Requested host.Requested `json:"requested"`
	Grants    []host.Grant   `json:"grants"`
}

// grantAPI has the routes of grants.
type grantAPI struct {
	find   lookup
	grants host.Grants
}

func (a *grantAPI) routes() []route {
	of := "/v1/connections/:connectionId"
	return documented("api.md#connections-grants-bindings-secrets", []route{
		{Route: web.Route{Method: "GET", Path: of + "/grants", Scope: access.ConnectionsRead, Handle: a.getGrants},
			summary: "What a connection's connector asks for, and what it was given", answer: grants{}},
		{Route: web.Route{Method: "POST", Path: of + "/grants", Scope: access.GrantsApprove, Keyed: true,
			Handle: a.grant},
			summary: "Approve a grant; it replaces the active one", body: host.GrantTerms{}, answer: host.Grant{},
			status: 201},
		{Route: web.Route{Method: "POST", Path: "/v1/connections", Verb: "grant", Scope: access.GrantsApprove, Whole: true,
			Keyed: true, Upload: true, Handle: a.grantConnector},
			summary: "Give a connection of a module that need not be installed what it asks for", form: grantParts,
			answer: host.Connection{},
			codes:  []string{"binding_not_requested", "module_invalid", "signature_invalid", "connector_not_runnable"}},
		{Route: web.Route{Method: "DELETE", Path: of + "/grants/:grantId", Scope: access.GrantsApprove, Keyed: true,
			Handle: a.revokeGrant},
			summary: "Revoke a grant and cancel the run that has it"},
		{Route: web.Route{Method: "PUT", Path: of + "/bindings", Scope: access.GrantsApprove, Keyed: true,
			Handle: answerTo(a.find.connectionID, a.grants.ApproveBindings)},
			summary: "Approve what a connection may reach", body: host.Bindings{}, answer: host.Bindings{},
			codes: []string{"binding_not_requested"}},
	})
}

// grantParts are the parts of a grant that brings its module; grant is the JSON.
var grantParts = []string{"grant", "module", "signature"}

// grantConnector grants something to a connector that need not be installed. Whoever calls it must also
// be allowed to start runs with values that are not stored.
func (a *grantAPI) grantConnector(c *fiber.Ctx) error {
	parts, err := web.Parts(c, grantParts, "module", "grant")
	if err != nil {
		return err
	}
	q := host.ConnectorGrant{Overrides: &host.Overrides{}}
	if err := web.Decode(parts["grant"], &q); err != nil {
		return err
	}
	if q.Overrides == nil {
		return web.Invalid(web.Field{Path: "given", Rule: "required"})
	}
	q.Overrides.Module, q.Overrides.Signature = parts["module"], parts["signature"]
	if err := mayOverride(web.Principal(c), q.Overrides); err != nil {
		return err
	}
	out, err := a.grants.GrantConnector(web.Context(c), q)
	return web.Answer(c, out, err)
}

func (a *grantAPI) getGrants(c *fiber.Ctx) error {
	conn, err := a.find.connection(c)
	if err != nil {
		return err
	}
	out := grants{Grants: []host.Grant{}}
	if out.Requested, err = a.grants.Requested(web.Context(c), idOf(conn)); err != nil {
		return err
	}
	if conn.Grant != nil {
		out.Grants = append(out.Grants, *conn.Grant)
	}
	return web.JSON(c, 200, out)
}

func (a *grantAPI) grant(c *fiber.Ctx) error {
	id, err := a.find.connectionID(c)
	if err != nil {
		return err
	}
	var q host.GrantTerms
	if err := web.Body(c, &q); err != nil {
		return err
	}
	switch {
	case q.Scope == nil: // absent, as opposed to null
		return web.Invalid(web.Field{Path: "scope", Rule: "an object, or null for everything declared"})
	case q.AccessMode != "continuous" && q.AccessMode != "single_use":
		return web.Invalid(web.Field{Path: "accessMode", Rule: "continuous or single_use"})
	}
	g, err := a.grants.GrantConnection(web.Context(c), id, q)
	if err != nil {
		return err
	}
	return web.Created(c, "/v1/connections/"+string(id)+"/grants/"+g.GrantID, g)
}

func (a *grantAPI) revokeGrant(c *fiber.Ctx) error {
	id, err := a.find.connectionID(c)
	if err != nil {
		return err
	}
	grant, err := web.ID(c, "grantId")
	if err != nil {
		return err
	}
	return web.Done(c, a.grants.RevokeGrant(web.Context(c), id, grant))
}
