package api

import (
	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// authorizationAPI has the routes by which owners authorize secrets. What the owner has to open and
// enter is in no stored answer.
type authorizationAPI struct{ authorizations host.Authorizations }

func (a *authorizationAPI) routes() []route {
	one := "/v1/authorizations/:authorizationId"
	return documented("api.md#authorizing-a-secret", []route{
		{Route: web.Route{Method: "POST", Path: "/v1/authorizations", Scope: access.SecretsWrite, Whole: true, Keyed: true,
			Upload: true, Handle: a.authorize},
			summary: "Have a server give out tokens for a secret", form: authorizationParts, answer: host.Authorization{},
			status: 201, codes: []string{"binding_not_requested", "connection_not_ready", "module_invalid",
				"signature_invalid", "rate_limited"}},
		{Route: web.Route{Method: "GET", Path: one, Scope: access.SecretsWrite, Handle: a.look},
			summary: "What the owner has to do for it, or what came of it", answer: host.Authorization{},
			query: []parameter{{name: "after", typ: "string",
				text:  "A status: it is answered when there is another, or after 30 s.",
				words: []string{host.AuthorizationStarting, host.AuthorizationWaiting}}}},
		{Route: web.Route{Method: "DELETE", Path: one, Scope: access.SecretsWrite, Keyed: true,
			Handle: done(idIn("authorizationId"), a.authorizations.CancelAuthorization)},
			summary: "Give it up; nothing is stored for it from then on"},
	})
}

// authorizationParts are the parts of an authorization that brings its module; authorization is the
// JSON.
var authorizationParts = []string{"authorization", "module", "signature"}

// authorize begins an authorization. Whoever calls it must also be allowed to start runs with
// values that are not stored. One that redirects to an address of this machine is only for callers
// on it, since a browser elsewhere would send the code to a program there.
func (a *authorizationAPI) authorize(c *fiber.Ctx) error {
	parts, err := web.Parts(c, authorizationParts, "module", "authorization")
	if err != nil {
		return err
	}
	var q host.NewAuthorization
	if err := web.Decode(parts["authorization"], &q); err != nil {
		return err
	}
	if q.Overrides == nil {
		return web.Invalid(web.Field{Path: "given", Rule: "required"})
	}
	q.Overrides.Module, q.Overrides.Signature = parts["module"], parts["signature"]
	who := web.Principal(c)
	if err := mayOverride(who, q.Overrides); err != nil {
		return err
	}
	if q.Flow == abi.OAuthCode && !who.Local() {
		return web.NewProblem(0, "forbidden",
			"In a browser a secret is authorized on the machine of the host, and asked for at the local socket; use flow device_code.")
	}
	out, err := a.authorizations.Authorize(web.Context(c), q)
	if err != nil {
		return err
	}
	return web.Created(c, "/v1/authorizations/"+out.AuthorizationID, out)
}

func (a *authorizationAPI) look(c *fiber.Ctx) error {
	id, err := web.ID(c, "authorizationId")
	if err != nil {
		return err
	}
	if err := refuseBlank(c, "after"); err != nil {
		return err
	}
	after := string(c.Context().QueryArgs().Peek("after"))
	if after != "" && after != host.AuthorizationStarting && after != host.AuthorizationWaiting {
		return web.Invalid(web.Field{Path: "query.after", Rule: "starting or waiting"})
	}
	ctx := web.PollContext(c)
	out, err := a.authorizations.Authorization(ctx, id, after)
	if err == nil {
		err = web.Recheck(c)(ctx) // time may have passed
	}
	if err != nil {
		return err
	}
	return web.JSON(c, 200, out)
}
