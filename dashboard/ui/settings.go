package ui

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/dashboard/control"
	"github.com/sluicehost/sluice/dashboard/web"
	"github.com/sluicehost/sluice/dashboard/webhook"
)

func (u *UI) settings(c *fiber.Ctx) error {
	ctx := web.Context(c)
	body := struct {
		Info      control.Info
		Failing   []string
		Limits    []fact
		Webhooks  []webhook.Webhook
		HasHooks  bool
		ExpiresAt time.Time // of the session
	}{Info: u.Host.Info(ctx), Failing: u.Host.Ready(ctx), ExpiresAt: web.Session(c).ExpiresAt}
	for _, name := range slices.Sorted(maps.Keys(body.Info.Limits)) {
		f := measured(name, body.Info.Limits[name])
		body.Limits = append(body.Limits, fact{name, f.Value})
	}
	if u.Webhooks != nil {
		var err error
		if body.Webhooks, err = u.Webhooks.List(ctx); err != nil {
			return err
		}
		body.HasHooks = true
	}
	return u.show(c, "settings", page{Title: "Settings", Nav: "settings", Body: body})
}

// createWebhook shows the secret that was made once, in its answer.
func (u *UI) createWebhook(c *fiber.Ctx) error {
	f, err := formOf(c)
	if err != nil {
		return err
	}
	if u.Webhooks == nil {
		return web.NotFound()
	}
	d := webhook.Definition{URL: f.text("url", 2048), Tags: f.lines("tags")}
	switch f.raw("when") {
	case "", "needed":
		d.Events = []string{webhook.OwnerNeeded}
	case "ends":
		d.Events = []string{"run.completed", "run.failed", "run.cancelled"}
	case "failures":
		d.Events = []string{"run.failed"}
	case "events":
		if d.Events = f.lines("events"); len(d.Events) == 0 {
			f.fail("events", "at least one type of event")
		}
	default:
		f.fail("when", "one of the choices")
	}
	if err := f.err(); err != nil {
		return err
	}
	ctx := web.Context(c)
	w, secret, err := u.Webhooks.Create(ctx, web.Who(c).ID, d, nil)
	if refused := (*webhook.Refusal)(nil); errors.As(err, &refused) {
		return web.NewProblem(400, "validation_error", "%s", sentence(refused.Message)).With("fields", []web.Field{{Path: refused.Member, Rule: "refused"}})
	}
	if errors.Is(err, webhook.ErrTooMany) {
		return web.NewProblem(409, "conflict", "%s", sentence(err.Error())+".")
	}
	if err != nil {
		return err
	}
	if err := u.Host.Audit(ctx, web.Who(c), "webhook.created", w.ID, "done", nil); err != nil {
		return err
	}
	return u.write(c, "settings", "once", struct {
		webhook.Webhook
		Secret string
	}{w, secret})
}

func (u *UI) deleteWebhook(c *fiber.Ctx) error {
	id, err := web.ID(c, "webhookId")
	if err != nil {
		return err
	}
	if _, err := formOf(c); err != nil {
		return err
	}
	if u.Webhooks == nil {
		return web.NotFound()
	}
	ctx := web.Context(c)
	if err := u.Webhooks.Delete(ctx, id); err != nil {
		return err
	}
	if err := u.Host.Audit(ctx, web.Who(c), "webhook.deleted", id, "done", nil); err != nil {
		return err
	}
	return reload(c)
}
