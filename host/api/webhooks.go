package api

import (
	"errors"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// newWebhook is the answer to creating a webhook.
type newWebhook struct {
	WebhookID     string `json:"webhookId"`
	Secret        string `json:"secret,omitempty"`
	SecretOmitted bool   `json:"secretOmitted,omitempty"`
	SecretAt      string `json:"secretAt,omitempty"` // of another host that can still show it: address, or id
}

// newSecret is the body of a rotation.
type newSecret struct {
	Secret string `json:"secret,omitempty"` // "" generates one
}

// webhookAPI has the routes of webhooks. A webhook receives the events of every connection.
type webhookAPI struct {
	webhooks *webhook.Hooks
	audit    host.AuditLog
}

func (a *webhookAPI) routes() []route {
	one := "/v1/webhooks/:webhookId"
	return documented("api.md#webhooks", []route{
		{Route: web.Route{Method: "POST", Path: "/v1/webhooks", Scope: access.WebhooksManage, Whole: true, Keyed: true,
			Handle: a.createWebhook},
			summary: "Have events delivered; a secret that is made is shown once", body: webhook.Definition{},
			answer: newWebhook{}, status: 201,
			codes: []string{"conflict"}},
		{Route: web.Route{Method: "GET", Path: "/v1/webhooks", Scope: access.WebhooksManage, Whole: true,
			Handle: list(a.webhooks.List, func(w webhook.Webhook) string { return w.ID })},
			summary: "List webhooks, without secrets", query: paging, answer: web.List[webhook.Webhook]{}},
		{Route: web.Route{Method: "GET", Path: one, Scope: access.WebhooksManage, Whole: true,
			Handle: answer(idIn("webhookId"), a.webhooks.Get)},
			summary: "One webhook", answer: webhook.Webhook{}},
		{Route: web.Route{Method: "DELETE", Path: one, Scope: access.WebhooksManage, Whole: true, Keyed: true,
			Handle: a.deleteWebhook},
			summary: "Remove a webhook"},
		{Route: web.Route{Method: "POST", Path: one, Verb: "rotate", Scope: access.WebhooksManage, Whole: true,
			Keyed: true, Handle: a.rotateWebhook},
			summary: "Replace the signing secret; a secret that is made is shown once, and deliveries have both signatures for 24 hours",
			body:    newSecret{}, answer: webhook.Rotation{}, codes: []string{"conflict"}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "test", Scope: access.WebhooksManage, Whole: true,
			Keyed: true, Handle: a.testWebhook},
			summary: "Deliver a test now, and say what came of it", answer: webhook.Attempt{}},
		{Route: web.Route{Method: "GET", Path: one + "/deliveries", Scope: access.WebhooksManage, Whole: true,
			Handle: a.listDeliveries},
			summary: "The last attempts to deliver, newest first", query: paging, answer: web.List[webhook.Attempt]{}},
		{Route: web.Route{Method: "POST", Path: one + "/deliveries/:deliveryId", Verb: "redeliver",
			Scope: access.WebhooksManage, Whole: true, Keyed: true,
			Handle: a.redeliver},
			summary: "Make one attempt more for what an attempt was for, and say what came of it",
			answer:  webhook.Attempt{}},
	})
}

func (a *webhookAPI) createWebhook(c *fiber.Ctx) error {
	var q webhook.Definition
	if err := web.Body(c, &q); err != nil {
		return err
	}
	slot := web.SlotOf(c)
	slot.Omit("secret")
	w, secret, err := a.webhooks.Create(web.Context(c), web.Who(c).ID, q,
		func(w webhook.Webhook, secret string) []store.Write {
			body, err := web.Encode(newWebhook{WebhookID: w.ID, Secret: secret})
			if err != nil {
				return nil
			}
			return slot.Writes(201, body, "/v1/webhooks/"+w.ID)
		})
	if err != nil {
		return webhookRefused(err)
	}
	if err := a.audit.Audit(web.Context(c), "webhook.created", w.ID, "done", nil); err != nil {
		return err
	}
	return web.Created(c, "/v1/webhooks/"+w.ID, newWebhook{WebhookID: w.ID, Secret: secret})
}

func (a *webhookAPI) deleteWebhook(c *fiber.Ctx) error {
	id, err := web.ID(c, "webhookId")
	if err != nil {
		return err
	}
	if err := a.webhooks.Delete(web.Context(c), id); err != nil {
		return err
	}
	return web.Done(c, a.audit.Audit(web.Context(c), "webhook.deleted", id, "done", nil))
}

// webhookRefused translates the refusal of a definition or a secret.
func webhookRefused(err error) error {
	var refused *webhook.Refusal
	switch {
	case errors.As(err, &refused):
		p := web.Invalid(web.Field{Path: refused.Member, Rule: refused.Message})
		p.Message = refused.Message
		return p
	case errors.Is(err, webhook.ErrTooMany):
		return web.NewProblem(0, "conflict", "There are %d webhooks already; delete one first.", webhook.MaxWebhooks)
	case errors.Is(err, webhook.ErrRotations):
		return web.NewProblem(0, "conflict",
			"The secret was replaced too often within a day; wait until an older one is over.")
	}
	return err
}

func (a *webhookAPI) rotateWebhook(c *fiber.Ctx) error {
	id, err := web.ID(c, "webhookId")
	if err != nil {
		return err
	}
	var q newSecret
	if err := web.Body(c, &q); err != nil {
		return err
	}
	slot := web.SlotOf(c)
	slot.Omit("secret")
	r, err := a.webhooks.Rotate(web.Context(c), id, q.Secret, func(r webhook.Rotation) []store.Write {
		body, err := web.Encode(r)
		if err != nil {
			return nil
		}
		return slot.Writes(200, body, "")
	})
	if err != nil {
		return webhookRefused(err)
	}
	if err := a.audit.Audit(web.Context(c), "webhook.rotated", id, "done", nil); err != nil {
		return err
	}
	return web.JSON(c, 200, r)
}

func (a *webhookAPI) testWebhook(c *fiber.Ctx) error {
	id, err := web.ID(c, "webhookId")
	if err != nil {
		return err
	}
	got, err := a.webhooks.Test(web.PollContext(c), id)
	return a.attempted(c, "webhook.tested", id, got, err)
}

func (a *webhookAPI) redeliver(c *fiber.Ctx) error {
	id, err := web.ID(c, "webhookId")
	if err != nil {
		return err
	}
	delivery, err := web.ID(c, "deliveryId")
	if err != nil {
		return err
	}
	got, err := a.webhooks.Redeliver(web.PollContext(c), id, delivery)
	return a.attempted(c, "webhook.redelivered", id, got, err)
}

// attempted answers with the requested attempt. The request succeeds even if the attempt failed.
func (a *webhookAPI) attempted(c *fiber.Ctx, action, id string, got webhook.Attempt, err error) error {
	if err != nil {
		return err
	}
	outcome := "done"
	if got.Error != "" {
		outcome = "failed"
	}
	if err := a.audit.Audit(web.Context(c), action, id, outcome, map[string]string{"delivery": got.ID}); err != nil {
		return err
	}
	return web.JSON(c, 200, got)
}

func (a *webhookAPI) listDeliveries(c *fiber.Ctx) error {
	id, err := web.ID(c, "webhookId")
	if err != nil {
		return err
	}
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	all, err := a.webhooks.Deliveries(web.Context(c), id)
	if err != nil {
		return err
	}
	if page.After != "" { // newest first, so later pages have smaller ids
		all = slices.DeleteFunc(all, func(d webhook.Attempt) bool { return d.ID >= page.After })
	}
	next := ""
	if len(all) > page.Limit {
		all = all[:page.Limit]
		next = all[len(all)-1].ID
	}
	return web.Listed(c, all, next)
}
