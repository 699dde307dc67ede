// Package api is the routes under /v1 (run-api.md sections 5 to 11): runs in the
// shape of openwop 1.0, and native resources. It reads the store, asks the host
// through host.Host, and decides nothing itself: who may come in is
// host/web's, what a log means is host/timeline's.
//
// Bodies, parameters, and everything that guests and sites left in the store are
// hostile; web has bounded what a request holds, and escapes what is answered.
package api

import (
	"log/slog"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// Options are what an API needs.
type Options struct {
	Host     host.Host
	Store    store.Store
	Access   *access.Access
	Streams  *stream.Hub
	Webhooks *webhook.Hooks
	// PublicURL is how clients reach the host, without a slash at the end; "" is what
	// they sent as Host (A62).
	PublicURL string
	Version   string
	// Limits are published in the discovery document (A253).
	Limits map[string]int64
	// Browser: runs may be lent one (A56).
	Browser bool
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now
}

// An API is the table of routes and their descriptions.
type API struct {
	Options
	routes   []route
	openapi  []byte
	asyncapi []byte
	exports  exportPlaces
}

// New makes the table, and its descriptions of it.
func New(o Options) (*API, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &API{Options: o}
	a.routes = slices.Concat(
		a.descriptionRoutes(), a.workflowRoutes(), a.runRoutes(), a.eventRoutes(), a.interruptRoutes(), a.assistanceRoutes(),
		a.artifactRoutes(), a.viewRoutes(), a.webhookRoutes(),
		a.connectorRoutes(), a.connectionRoutes(), a.grantRoutes(), a.secretRoutes(), a.scheduleRoutes(), a.recordRoutes(),
		a.stateRoutes(), a.keyRoutes(), a.auditRoutes(), a.systemRoutes(),
	)
	var err error
	if a.openapi, err = openAPI(a.routes, o.Version); err != nil {
		return nil, err
	}
	a.asyncapi, err = asyncAPI(o.Version)
	return a, err
}

// Register adds the routes to an App.
func (a *API) Register(app *web.App) {
	for _, r := range a.routes {
		if !r.elsewhere {
			app.Add(r.closed())
		}
	}
}
