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

// settingUI serves the page of the host and its webhooks.
type settingUI struct {
	*frame
	system   host.System
	webhooks *webhook.Hooks // nil: there are none
	audit    host.AuditLog
	hosts    host.Hosts
}

func (u *settingUI) routes() []web.Route {
	one := "/ui/webhooks/:webhookId"
	return []web.Route{
		page("/ui/settings", u.showSettings),
		live("/ui/settings/live", u.settingsLive),
		action("/ui/hosts/:hostId/drain", u.drain(true)),
		action("/ui/hosts/:hostId/undrain", u.drain(false)),
		action("/ui/webhooks", u.createWebhook),
		action(one+"/delete", u.deleteWebhook),
		action(one+"/test", u.testWebhook),
		action(one+"/rotate", u.rotateWebhook),
		action(one+"/deliveries/:deliveryId/redeliver", u.redeliver),
	}
}

func (u *settingUI) showSettings(c *fiber.Ctx) error {
	ctx := web.Context(c)
	hosts, err := u.lookHosts(ctx)
	if err != nil {
		return err
	}
	body := struct {
		hostList
		Info      host.Info
		Failing   []string
		Limits    []fact
		Webhooks  []hook
		HasHooks  bool
		ExpiresAt time.Time // of the session
	}{hostList: hosts, Info: u.system.Info(ctx), Failing: u.system.Ready(ctx), ExpiresAt: web.Session(c).ExpiresAt}
	for _, name := range slices.Sorted(maps.Keys(body.Info.Limits)) {
		f := measured(name, body.Info.Limits[name])
		body.Limits = append(body.Limits, fact{name, f.Value})
	}
	if u.webhooks != nil {
		if body.Webhooks, err = u.withAttempts(ctx); err != nil {
			return err
		}
		body.HasHooks = true
	}
	return u.show(c, "settings", content{Title: "Settings", Nav: "settings", Live: "/ui/settings/live", Body: body})
}

// A hook is a webhook with its newest attempts.
type hook struct {
	webhook.Webhook
	Attempts []webhook.Attempt
}

// shownAttempts bounds the attempts shown for each webhook; the API returns all that are kept.
const shownAttempts = 10

func (u *settingUI) withAttempts(ctx context.Context) ([]hook, error) {
	all, err := u.webhooks.List(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]hook, 0, len(all))
	for _, w := range all {
		attempts, err := u.webhooks.Deliveries(ctx, w.ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) { // removed meanwhile
			return nil, err
		}
		out = append(out, hook{w, attempts[:min(len(attempts), shownAttempts)]})
	}
	return out, nil
}

// createWebhook creates a webhook and shows a generated secret once.
func (u *settingUI) createWebhook(c *fiber.Ctx) error {
	f, err := formOf(c)
	if err != nil {
		return err
	}
	if u.webhooks == nil {
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
	w, secret, err := u.webhooks.Create(ctx, web.Who(c).ID, d, nil)
	if refused := (*webhook.Refusal)(nil); errors.As(err, &refused) {
		return web.NewProblem(400, "validation_error", "%s", sentence(refused.Message)).
			With("fields", []web.Field{{Path: refused.Member, Rule: "refused"}})
	}
	if errors.Is(err, webhook.ErrTooMany) {
		return web.NewProblem(409, "conflict", "%s", sentence(err.Error())+".")
	}
	if err != nil {
		return err
	}
	if err := u.audit.Audit(ctx, "webhook.created", w.ID, "done", nil); err != nil {
		return err
	}
	return u.write(c, "settings", "once", struct {
		webhook.Webhook
		Secret string
	}{w, secret})
}

func (u *settingUI) deleteWebhook(c *fiber.Ctx) error {
	return u.withWebhook(c, "webhook.deleted", func(ctx context.Context, id string) (string, error) {
		return "done", u.webhooks.Delete(ctx, id)
	})
}

func (u *settingUI) testWebhook(c *fiber.Ctx) error {
	return u.withWebhook(c, "webhook.tested", func(ctx context.Context, id string) (string, error) {
		a, err := u.webhooks.Test(ctx, id)
		return attempted(a), err
	})
}

func (u *settingUI) redeliver(c *fiber.Ctx) error {
	delivery, err := web.ID(c, "deliveryId")
	if err != nil {
		return err
	}
	return u.withWebhook(c, "webhook.redelivered", func(ctx context.Context, id string) (string, error) {
		a, err := u.webhooks.Redeliver(ctx, id, delivery)
		return attempted(a), err
	})
}

// attempted returns the outcome of an attempt for the audit log.
func attempted(a webhook.Attempt) string {
	if a.Error != "" {
		return "failed"
	}
	return "done"
}

// withWebhook changes a webhook, records that in the audit log and reloads the page.
func (u *settingUI) withWebhook(c *fiber.Ctx, action string,
	do func(ctx context.Context, id string) (outcome string, err error)) error {
	id, err := web.ID(c, "webhookId")
	if err != nil {
		return err
	}
	if _, err := formOf(c); err != nil {
		return err
	}
	if u.webhooks == nil {
		return web.NotFound()
	}
	outcome, err := do(web.Context(c), id)
	if err != nil {
		return err
	}
	return reload(c, u.audit.Audit(web.Context(c), action, id, outcome, nil))
}

// rotateWebhook replaces the secret and shows the new one once.
func (u *settingUI) rotateWebhook(c *fiber.Ctx) error {
	id, err := web.ID(c, "webhookId")
	if err != nil {
		return err
	}
	if _, err := formOf(c); err != nil {
		return err
	}
	if u.webhooks == nil {
		return web.NotFound()
	}
	r, err := u.webhooks.Rotate(web.Context(c), id, "", nil)
	if errors.Is(err, webhook.ErrRotations) {
		return web.NewProblem(409, "conflict", "%s", sentence(err.Error())+".")
	}
	if err != nil {
		return err
	}
	if err := u.audit.Audit(web.Context(c), "webhook.rotated", id, "done", nil); err != nil {
		return err
	}
	return u.write(c, "settings", "rotated", r)
}
