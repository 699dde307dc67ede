package api

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/dashboard/access"
	"github.com/sluicehost/sluice/dashboard/web"
	"github.com/sluicehost/sluice/dashboard/webhook"
	"github.com/sluicehost/sluice/store"
)

// newWebhook is the answer of A233.
type newWebhook struct {
	WebhookID     string `json:"webhookId"`
	Secret        string `json:"secret,omitempty"`
	SecretOmitted bool   `json:"secretOmitted,omitempty"`
}

// webhookRoutes are A233 to A235. A webhook gets the events of every connection.
func (a *API) webhookRoutes() []route {
	one := "/v1/webhooks/:webhookId"
	return []route{
		{Route: web.Route{Method: "POST", Path: "/v1/webhooks", Scope: access.WebhooksManage, Whole: true, Keyed: true, Handle: a.createWebhook},
			rule: "A233", summary: "Have events delivered; a secret that is made is shown once", body: webhook.Definition{}, answer: newWebhook{}, status: 201,
			codes: []string{"conflict"}},
		{Route: web.Route{Method: "GET", Path: "/v1/webhooks", Scope: access.WebhooksManage, Whole: true, Handle: a.listWebhooks},
			rule: "A235", summary: "List webhooks, without secrets", query: paging, answer: web.List[webhook.Webhook]{}},
		{Route: web.Route{Method: "GET", Path: one, Scope: access.WebhooksManage, Whole: true, Handle: a.getWebhook},
			rule: "A235", summary: "One webhook", answer: webhook.Webhook{}},
		{Route: web.Route{Method: "DELETE", Path: one, Scope: access.WebhooksManage, Whole: true, Keyed: true, Handle: a.deleteWebhook},
			rule: "A234", summary: "Remove a webhook"},
	}
}

func (a *API) createWebhook(c *fiber.Ctx) error {
	var q webhook.Definition
	if err := web.Body(c, &q); err != nil {
		return err
	}
	slot := web.SlotOf(c)
	slot.Omit("secret")
	w, secret, err := a.Webhooks.Create(web.Context(c), web.Who(c).ID, q, func(w webhook.Webhook, secret string) []store.Write {
		body, err := web.Encode(newWebhook{WebhookID: w.ID, Secret: secret})
		if err != nil {
			return nil
		}
		return slot.Writes(201, body, "/v1/webhooks/"+w.ID)
	})
	var refused *webhook.Refusal
	switch {
	case errors.As(err, &refused):
		p := web.Invalid(web.Field{Path: refused.Member, Rule: refused.Message})
		p.Message = refused.Message
		return p
	case errors.Is(err, webhook.ErrTooMany):
		return web.NewProblem(0, "conflict", "There are %d webhooks already; delete one first.", webhook.MaxWebhooks)
	case err != nil:
		return err
	}
	if err := a.Host.Audit(web.Context(c), web.Who(c), "webhook.created", w.ID, "done", nil); err != nil {
		return err
	}
	return web.Created(c, "/v1/webhooks/"+w.ID, newWebhook{WebhookID: w.ID, Secret: secret})
}

func (a *API) listWebhooks(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	all, err := a.Webhooks.List(web.Context(c))
	if err != nil {
		return err
	}
	return listed(c, page, all, func(w webhook.Webhook) string { return w.ID })
}

func (a *API) getWebhook(c *fiber.Ctx) error {
	id, err := web.ID(c, "webhookId")
	if err != nil {
		return err
	}
	w, err := a.Webhooks.Get(web.Context(c), id)
	if err != nil {
		return err
	}
	return web.JSON(c, 200, w)
}

func (a *API) deleteWebhook(c *fiber.Ctx) error {
	id, err := web.ID(c, "webhookId")
	if err != nil {
		return err
	}
	if err := a.Webhooks.Delete(web.Context(c), id); err != nil {
		return err
	}
	if err := a.Host.Audit(web.Context(c), web.Who(c), "webhook.deleted", id, "done", nil); err != nil {
		return err
	}
	return web.Nothing(c)
}
