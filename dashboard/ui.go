// Package dashboard is the owner's dashboard: the pages below /ui, the fragments that
// they stream to themselves, and the routes that their buttons call. It reads the
// store and the log, asks the services of package host, and decides nothing itself.
// Each kind of page is a type with its table of routes.
//
// Strings of connectors, sites and records are hostile. They reach HTML through
// html/template alone, in text and attribute contexts, inside <bdi hx-disable>,
// and are never made into links. No value is ever converted to a type that
// html/template trusts. Scripts, styles and icons are files; nothing is inline,
// nothing is evaluated, and no page asks another server for anything.
package dashboard

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// Options configure a UI.
type Options struct {
	Host     host.Host
	Store    store.Store
	Streams  *stream.Hub
	Webhooks *webhook.Hooks // nil: the settings page shows none
	Version  string
	Now      func() time.Time // nil: time.Now
}

// A UI holds the routes of the dashboard. It is safe for concurrent use.
type UI struct {
	frame  *frame
	keys   *keyUI
	tables []resource
}

// A resource has the pages about one kind of thing, and the actions on them.
type resource interface{ routes() []web.Route }

// New returns a UI with all pages.
func New(o Options) (*UI, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	h, s := o.Host, o.Store
	f, err := newFrame(waiting{s, o.Streams, h}, o.Version, o.Now)
	if err != nil {
		return nil, err
	}
	keys := &keyUI{frame: f, connections: h, audit: h}
	return &UI{f, keys, []resource{
		f,
		&overviewUI{f, h, h, h, s},
		&inboxUI{f, h},
		&runUI{f, h, s, h, h, h},
		&connectionUI{f, h, h, h, h, h, h, s, s},
		&grantUI{f, h, h, h},
		&scheduleUI{f, h, h},
		&dataUI{f, h, s, h},
		&recordUI{f, h, s, h, h},
		&sqlUI{f, h, s, h},
		&destinationUI{f, h, s},
		&paletteUI{f, h, h, s},
		&assistantUI{f, h, h},
		&connectorUI{f, h, h},
		keys,
		&auditUI{f, h},
		&settingUI{f, h, o.Webhooks, h, h},
	}}, nil
}

// Register adds the routes to an App and takes its API keys.
func (u *UI) Register(app *web.App) {
	u.keys.keys = app.Access().Keys
	for _, r := range u.tables {
		for _, route := range r.routes() {
			app.Add(route)
		}
	}
}

// ErrorPage shows a refusal to a person.
func (u *UI) ErrorPage(c *fiber.Ctx, p *web.Problem) error {
	return u.frame.write(c, "error", "bare", struct {
		Status           int
		Message, Request string
	}{p.Status, p.Message, web.RequestID(c)})
}

// open returns a route that needs no session. All others are for the owner only.
func open(path string, h fiber.Handler) web.Route {
	return web.Route{Method: "GET", Path: path, Open: true, Page: true, Handle: h}
}

// page returns the route of a page.
func page(path string, h fiber.Handler) web.Route {
	return web.Route{Method: "GET", Path: path, Owner: true, Page: true, Handle: h}
}

// part returns the route of a fragment that a page fetches.
func part(path string, h fiber.Handler) web.Route {
	return web.Route{Method: "GET", Path: path, Owner: true, Handle: h}
}

// live returns the route of a page's event stream.
func live(path string, h fiber.Handler) web.Route {
	return web.Route{Method: "GET", Path: path, Owner: true, Stream: true, Handle: h}
}

// action returns the route of a form or a button.
func action(path string, h fiber.Handler) web.Route {
	return web.Route{Method: "POST", Path: path, Owner: true, Handle: h}
}

// upload returns the route of a form with files.
func upload(path string, h fiber.Handler) web.Route {
	return web.Route{Method: "POST", Path: path, Owner: true, Upload: true, Handle: h}
}
