package api

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// destinationAPI has the routes of destinations. They are for the owner, since a destination gets
// the data of every connection and may be a file of this machine.
type destinationAPI struct {
	destinations host.Destinations
}

// rebuilt is the body of a rebuild; without members it covers all tables.
type rebuilt struct {
	ConnectionID string `json:"connectionId,omitempty"`
	Stream       string `json:"stream,omitempty"`
}

func (a *destinationAPI) routes() []route {
	one := "/v1/destinations/:name"
	return documented("api.md#destinations", []route{
		{Route: web.Route{Method: "GET", Path: "/v1/destinations", Owner: true,
			Handle: list(a.destinations.Destinations, func(d host.Destination) string { return d.Name })},
			summary: "List destinations, without credentials", query: paging, answer: web.List[host.Destination]{}},
		{Route: web.Route{Method: "POST", Path: "/v1/destinations", Owner: true, Keyed: true, Handle: a.add},
			summary: "Keep a database or files up to date with what is collected", body: host.NewDestination{},
			answer: host.Destination{}, status: 201,
			codes: []string{"conflict", "destination_claimed", "destination_foreign", "destination_unavailable"}},
		{Route: web.Route{Method: "GET", Path: one, Owner: true, Handle: answer(slugIn, a.destinations.Destination)},
			summary: "One destination, its tables, and how far behind they are", answer: host.Destination{}},
		{Route: web.Route{Method: "DELETE", Path: one, Owner: true, Keyed: true,
			Handle: done(slugIn, a.destinations.RemoveDestination)},
			summary: "Forget a destination; its tables stay"},
		{Route: web.Route{Method: "POST", Path: one, Verb: "sync", Owner: true, Keyed: true,
			Handle: answer(slugIn, a.destinations.SyncDestination)},
			summary: "Bring in everything that there is now, and answer when it is done", answer: host.Destination{}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "pause", Owner: true, Keyed: true,
			Handle: answer(slugIn, a.pause(true))},
			summary: "Stop feeding a destination", answer: host.Destination{}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "resume", Owner: true, Keyed: true,
			Handle: answer(slugIn, a.pause(false))},
			summary: "Go on feeding a destination", answer: host.Destination{}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "rotate", Owner: true, Keyed: true,
			Handle: answerTo(slugIn, a.rotate)},
			summary: "Sign what is sent with another secret; the one before signs too for 24 hours", body: rotated{},
			answer: host.Destination{}, codes: []string{"conflict"}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "rebuild", Owner: true, Keyed: true,
			Handle: answerTo(slugIn, a.rebuild)},
			summary: "Remove tables of a destination and bring everything in anew", body: rebuilt{},
			answer: host.Destination{},
			codes:  []string{"destination_claimed", "destination_foreign", "destination_unavailable"}},
	})
}

// rotated is the body of a rotation.
type rotated struct {
	Secret string `json:"secret"`
}

func (a *destinationAPI) add(c *fiber.Ctx) error {
	var q host.NewDestination
	if err := web.Body(c, &q); err != nil {
		return err
	}
	d, err := a.destinations.AddDestination(web.Context(c), q)
	if err != nil {
		return err
	}
	return web.Created(c, "/v1/destinations/"+d.Name, d)
}

func (a *destinationAPI) pause(paused bool) func(context.Context, string) (host.Destination, error) {
	return func(ctx context.Context, name string) (host.Destination, error) {
		return a.destinations.PauseDestination(ctx, name, paused)
	}
}

func (a *destinationAPI) rotate(ctx context.Context, name string, q rotated) (host.Destination, error) {
	return a.destinations.RotateDestination(ctx, name, q.Secret)
}

func (a *destinationAPI) rebuild(ctx context.Context, name string, q rebuilt) (host.Destination, error) {
	if (q.ConnectionID == "") != (q.Stream == "") {
		return host.Destination{}, web.Invalid(web.Field{Path: "stream", Rule: "together"})
	}
	return a.destinations.RebuildDestination(ctx, name, store.ConnectionID(q.ConnectionID), store.Stream(q.Stream))
}
