package api

import (
	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/dashboard/access"
	"github.com/sluicehost/sluice/dashboard/control"
	"github.com/sluicehost/sluice/dashboard/web"
)

// secretValue is the body of A190.
type secretValue struct {
	Value string `json:"value"`
}

// secrets is the answer of A191.
type secrets struct {
	Data []control.Secret `json:"data"`
}

// secretRoutes are A190 to A192. None of them answers with a value (A194).
func (a *API) secretRoutes() []route {
	of := "/v1/connections/:connectionId/secrets"
	return []route{
		{Route: web.Route{Method: "GET", Path: of, Scope: access.ConnectionsRead, Handle: a.listSecrets},
			see: "api.md#connections-grants-bindings-secrets", summary: "Which secrets there are, and where they may go", answer: secrets{}},
		{Route: web.Route{Method: "PUT", Path: of + "/:name", Scope: access.SecretsWrite, Keyed: true, Handle: a.setSecret},
			see: "api.md#connections-grants-bindings-secrets", summary: "Store a secret", body: secretValue{}},
		{Route: web.Route{Method: "DELETE", Path: of + "/:name", Scope: access.SecretsWrite, Keyed: true, Handle: a.removeSecret},
			see: "api.md#connections-grants-bindings-secrets", summary: "Remove a secret"},
	}
}

func (a *API) listSecrets(c *fiber.Ctx) error {
	id, err := a.connectionID(c)
	if err != nil {
		return err
	}
	list, err := a.Host.Secrets(web.Context(c), id)
	if err != nil {
		return err
	}
	if list == nil {
		list = []control.Secret{}
	}
	return web.JSON(c, 200, secrets{list})
}

func (a *API) setSecret(c *fiber.Ctx) error {
	defer web.Wipe(c)
	id, err := a.connectionID(c)
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
	if err := a.Host.SetSecret(web.Context(c), web.Who(c), id, name, []byte(q.Value)); err != nil {
		return err
	}
	return web.Nothing(c)
}

func (a *API) removeSecret(c *fiber.Ctx) error {
	id, err := a.connectionID(c)
	if err != nil {
		return err
	}
	name, err := web.Param(c, "name")
	if err != nil {
		return err
	}
	if err := a.Host.RemoveSecret(web.Context(c), web.Who(c), id, name); err != nil {
		return err
	}
	return web.Nothing(c)
}
