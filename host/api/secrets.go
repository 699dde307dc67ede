package api

import (
	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// secretValue is the body of a new value.
type secretValue struct {
	Value string `json:"value"`
}

// secretAPI has the routes of secrets. None of them returns a value.
type secretAPI struct {
	find    lookup
	secrets host.Secrets
}

func (a *secretAPI) routes() []route {
	of := "/v1/connections/:connectionId/secrets"
	return documented("api.md#connections-grants-bindings-secrets", []route{
		{Route: web.Route{Method: "GET", Path: of, Scope: access.ConnectionsRead,
			Handle: listOf(a.find.connectionID, a.secrets.Secrets)},
			summary: "Which secrets there are, and where they may go", answer: web.List[host.Secret]{}},
		{Route: web.Route{Method: "PUT", Path: of + "/:name", Scope: access.SecretsWrite, Keyed: true,
			Handle: a.setSecret},
			summary: "Store a secret", body: secretValue{}},
		{Route: web.Route{Method: "DELETE", Path: of + "/:name", Scope: access.SecretsWrite, Keyed: true,
			Handle: a.removeSecret},
			summary: "Remove a secret"},
	})
}

func (a *secretAPI) setSecret(c *fiber.Ctx) error {
	defer web.Wipe(c)
	id, err := a.find.connectionID(c)
	if err != nil {
		return err
	}
	name, err := web.Param(c, "name")
	if err != nil {
		return err
	}
	var q secretValue
	if err := web.Body(c, &q); err != nil {
		return err
	}
	if q.Value == "" {
		return web.Invalid(web.Field{Path: "value", Rule: "a text of 1 byte to 16 KiB"})
	}
	return web.Done(c, a.secrets.SetSecret(web.Context(c), id, name, []byte(q.Value)))
}

func (a *secretAPI) removeSecret(c *fiber.Ctx) error {
	id, err := a.find.connectionID(c)
	if err != nil {
		return err
	}
	name, err := web.Param(c, "name")
	if err != nil {
		return err
	}
	return web.Done(c, a.secrets.RemoveSecret(web.Context(c), id, name))
}
