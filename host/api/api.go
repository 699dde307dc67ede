// Package api has the routes under /v1, which docs/spec/api.md describes: runs in
// the shape of openwop 1.0, and resources of Sluice. It asks the services of package
// host, reads the store, and decides nothing itself: host/web says who may come in,
// host/timeline what a log means. Each resource is a type with its table of routes.
//
// Bodies, parameters, and everything that guests and sites left in the store are
// hostile; web has bounded what a request holds, and escapes what is answered.
package api

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// Options configure an API.
type Options struct {
	Host             host.Host
	Store            store.Store
	Access           *access.Access
	Streams          *stream.Hub
	Webhooks         *webhook.Hooks
	AssistantGateway AssistantGateway // for assistants
	// PublicURL is the address of the host for clients, without a trailing slash; "" uses the
	// request's Host header.
	PublicURL string
	Version   string
	// Limits are published in the discovery document.
	Limits map[string]int64
	// Browser says that the browser binding is available.
	Browser bool
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now
}

// An API is the table of all routes.
type API struct{ routes []route }

// New builds and describes the routes of all resources.
func New(o Options) *API {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h, find := o.Host, lookup{o.Host, o.Store}
	places := &exportSlots{}
	program := implementation{Name: "sluice", Version: o.Version, Vendor: "sluicehost"}
	base := baseURL(o.PublicURL)
	workflows := workflowFinder{h, h}
	interrupts := &interruptAPI{find, h, o.Streams, o.Access.Tokens, o.Access.TokenPosts, base}
	descriptions := &descriptionAPI{implementation: program, connectors: h, limits: o.Limits, browser: o.Browser}
	runs := &runAPI{find: find, runs: h, list: o.Store, events: o.Store, streams: o.Streams, workflows: workflows,
		interrupts: interrupts, base: base}
	var tables [][]route
	for _, resource := range []interface{ routes() []route }{
		descriptions,
		&workflowAPI{workflows, o.Limits["budget.total"]},
		runs,
		&eventAPI{find, o.Streams},
		interrupts,
		&assistanceAPI{find, h, o.Streams, o.Store},
		&artifactAPI{find, h, o.Streams, h, places, o.Log},
		&bundleAPI{find, o.Store, o.Streams, program, o.Now},
		&viewAPI{find, h},
		&webhookAPI{o.Webhooks, h},
		&connectorAPI{find, h},
		&connectionAPI{find, h},
		&grantAPI{find, h},
		&secretAPI{find, h},
		&authorizationAPI{h},
		&scheduleAPI{find, h},
		&recordAPI{find, o.Store, o.Store, h, places, o.Log},
		&fileAPI{find, h, o.Log},
		&stateAPI{find, h, o.Store},
		&destinationAPI{h},
		&assistantAPI{h, o.AssistantGateway, base},
		&queryAPI{find, h},
		&searchAPI{find, h},
		&keyAPI{o.Access.Keys, h},
		&auditAPI{h},
		&systemAPI{h, h},
		&hostAPI{h},
	} {
		tables = append(tables, resource.routes())
	}
	a := &API{routes: slices.Concat(tables...)}
	descriptions.openapi = sync.OnceValues(func() ([]byte, error) { return openAPI(a.routes, o.Version) })
	descriptions.asyncapi = sync.OnceValues(func() ([]byte, error) { return asyncAPI(o.Version) })
	return a
}

// Register adds the routes to an App.
func (a *API) Register(app *web.App) {
	for _, r := range a.routes {
		if !r.elsewhere {
			app.Add(r.strict())
		}
	}
}
