package dashboard

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

func (u *UI) settings(c *fiber.Ctx) error {
	ctx := web.Context(c)
	body := struct {
		Info      host.Info
		Failing   []string
		Limits    []fact
		Webhooks  []hook
		HasHooks  bool
		ExpiresAt time.Time // of the session
	}{Info: u.Host.Info(ctx), Failing: u.Host.Ready(ctx), ExpiresAt: web.Session(c).ExpiresAt}
	for _, name := range slices.Sorted(maps.Keys(body.Info.Limits)) {
		f := measured(name, body.Info.Limits[name])
		body.Limits = append(body.Limits, fact{name, f.Value})
	}
	if u.Webhooks != nil {
		var err error
		if body.Webhooks, err = u.hooks(ctx); err != nil {
			return err
		}
		body.HasHooks = true
	}
	return u.show(c, "settings", page{Title: "Settings", Nav: "settings", Body: body})
}

// A hook is a webhook with its newest attempts.
type hook struct {
	webhook.Webhook
	Attempts []webhook.Attempt
}

// shownAttempts of each webhook are on the page; the API has all that are kept.
const shownAttempts = 10

func (u *UI) hooks(ctx context.Context) ([]hook, error) {
	all, err := u.Webhooks.List(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]hook, 0, len(all))
	for _, w := range all {
		attempts, err := u.Webhooks.Deliveries(ctx, w.ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) { // removed meanwhile
			return nil, err
		}
		out = append(out, hook{w, attempts[:min(len(attempts), shownAttempts)]})
	}
	return out, nil
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
	if err := u.Host.Audit(ctx, "webhook.created", w.ID, "done", nil); err != nil {
		return err
	}
	return u.write(c, "settings", "once", struct {
		webhook.Webhook
		Secret string
	}{w, secret})
}

func (u *UI) deleteWebhook(c *fiber.Ctx) error {
	return u.withWebhook(c, "webhook.deleted", func(ctx context.Context, id string) (string, error) {
		return "done", u.Webhooks.Delete(ctx, id)
	})
}

func (u *UI) testWebhook(c *fiber.Ctx) error {
	return u.withWebhook(c, "webhook.tested", func(ctx context.Context, id string) (string, error) {
		a, err := u.Webhooks.Test(ctx, id)
		return attempted(a), err
	})
}

func (u *UI) redeliver(c *fiber.Ctx) error {
	delivery, err := web.ID(c, "deliveryId")
	if err != nil {
		return err
	}
	return u.withWebhook(c, "webhook.redelivered", func(ctx context.Context, id string) (string, error) {
		a, err := u.Webhooks.Redeliver(ctx, id, delivery)
		return attempted(a), err
	})
}

// attempted is the outcome of an attempt for the audit log.
func attempted(a webhook.Attempt) string {
	if a.Error != "" {
		return "failed"
	}
	return "done"
}

// withWebhook does something with a webhook, writes it down, and shows the page anew.
func (u *UI) withWebhook(c *fiber.Ctx, action string, do func(ctx context.Context, id string) (outcome string, err error)) error {
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
	outcome, err := do(web.Context(c), id)
	if err != nil {
		return err
	}
	if err := u.Host.Audit(web.Context(c), action, id, outcome, nil); err != nil {
		return err
	}
	return reload(c)
}

// rotateWebhook shows the new secret once, in its answer.
func (u *UI) rotateWebhook(c *fiber.Ctx) error {
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
	r, err := u.Webhooks.Rotate(web.Context(c), id, "", nil)
	if errors.Is(err, webhook.ErrRotations) {
		return web.NewProblem(409, "conflict", "%s", sentence(err.Error())+".")
	}
	if err != nil {
		return err
	}
	if err := u.Host.Audit(web.Context(c), "webhook.rotated", id, "done", nil); err != nil {
		return err
	}
	return u.write(c, "settings", "rotated", r)
}
