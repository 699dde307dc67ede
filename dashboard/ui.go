package dashboard

import (
	"html/template"
	"log/slog"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// Options are what a UI needs.
type Options struct {
	Host     host.Host
	Store    store.Store
	Access   *access.Access // nil: that of the App it is registered on
	Streams  *stream.Hub
	Webhooks *webhook.Hooks // nil: the settings page has none
	Version  string
	Log      *slog.Logger     // nil: discarded
	Now      func() time.Time // nil: time.Now
}

// A UI is the dashboard. It may be used concurrently.
type UI struct {
	Options
	pages  map[string]*template.Template // by name, each with layout and parts
	assets map[string]asset
}

// New reads the templates and assets that are in the binary; an error is a
// mistake in one of them.
func New(o Options) (*UI, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	u := &UI{Options: o}
	var err error
	if u.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	u.pages, err = u.loadPages()
	return u, err
}

// Register adds the routes to an App. Everything but the login page and the
// assets is the owner's, with a session (A32).
func (u *UI) Register(app *web.App) {
	if u.Access == nil {
		u.Access = app.Access()
	}
	open := func(method, path string, h fiber.Handler) {
		app.Add(web.Route{Method: method, Path: path, Open: true, Page: true, Handle: h})
	}
	page := func(path string, h fiber.Handler) {
		app.Add(web.Route{Method: "GET", Path: path, Owner: true, Page: true, Handle: h})
	}
	part := func(path string, h fiber.Handler) {
		app.Add(web.Route{Method: "GET", Path: path, Owner: true, Handle: h})
	}
	live := func(path string, h fiber.Handler) {
		app.Add(web.Route{Method: "GET", Path: path, Owner: true, Stream: true, Handle: h})
	}
	do := func(path string, h fiber.Handler) {
		app.Add(web.Route{Method: "POST", Path: path, Owner: true, Handle: h})
	}
	upload := func(path string, h fiber.Handler) {
		app.Add(web.Route{Method: "POST", Path: path, Owner: true, Upload: true, Handle: h})
	}

	open("GET", "/ui/login", u.login)
	open("GET", "/ui/assets/:name", u.asset)

	page("/ui/", u.overview)
	live("/ui/live/overview", u.overviewLive)
	page("/ui/inbox", u.inbox)
	live("/ui/live/inbox", u.inboxLive)
	live("/ui/live/badge", u.badgeLive)

	page("/ui/runs", u.runs)
	live("/ui/live/runs", u.runsLive)
	do("/ui/runs", u.startRun)
	page("/ui/runs/:runId", u.run)
	live("/ui/runs/:runId/live", u.runLive)
	part("/ui/runs/:runId/older", u.olderEvents)
	do("/ui/runs/:runId/cancel", u.cancelRun)
	do("/ui/runs/:runId/pause", u.pauseRun)
	do("/ui/runs/:runId/resume", u.resumeRun)
	do("/ui/runs/:runId/answer", u.answer)

	page("/ui/connections/new", u.newConnection)
	do("/ui/connections", u.createConnection)
	page("/ui/connections/:connectionId", u.connection)
	live("/ui/connections/:connectionId/live", u.connectionLive)
	part("/ui/connections/:connectionId/history", u.history)
	do("/ui/connections/:connectionId/change", u.changeConnection)
	do("/ui/connections/:connectionId/dismiss", u.dismiss)
	do("/ui/connections/:connectionId/delete", u.deleteConnection)
	do("/ui/connections/:connectionId/reset", u.resetState)
	do("/ui/connections/:connectionId/secret", u.setSecret)
	do("/ui/connections/:connectionId/secret/remove", u.removeSecret)
	page("/ui/connections/:connectionId/grant", u.grantPage)
	do("/ui/connections/:connectionId/grant", u.grant)
	do("/ui/connections/:connectionId/revoke", u.revoke)
	do("/ui/connections/:connectionId/schedule", u.putSchedule)
	do("/ui/connections/:connectionId/schedule/pause", u.pauseSchedule)
	do("/ui/connections/:connectionId/schedule/resume", u.resumeSchedule)
	do("/ui/connections/:connectionId/schedule/delete", u.deleteSchedule)

	page("/ui/records", u.records)
	page("/ui/record", u.record)

	page("/ui/connectors", u.connectors)
	live("/ui/live/connectors", u.connectorsLive)
	upload("/ui/connectors/inspect", u.inspect)
	upload("/ui/connectors", u.install)
	page("/ui/connectors/:connectorName", u.connector)
	do("/ui/connectors/:connectorName/uninstall", u.uninstall)

	page("/ui/schedules", u.schedules)
	live("/ui/live/schedules", u.schedulesLive)
	page("/ui/keys", u.keys)
	do("/ui/keys", u.createKey)
	do("/ui/keys/:keyId/revoke", u.revokeKey)
	page("/ui/audit", u.audit)
	live("/ui/live/audit", u.auditLive)
	page("/ui/settings", u.settings)
	do("/ui/webhooks", u.createWebhook)
	do("/ui/webhooks/:webhookId/delete", u.deleteWebhook)
	do("/ui/webhooks/:webhookId/test", u.testWebhook)
	do("/ui/webhooks/:webhookId/rotate", u.rotateWebhook)
	do("/ui/webhooks/:webhookId/deliveries/:deliveryId/redeliver", u.redeliver)
}
