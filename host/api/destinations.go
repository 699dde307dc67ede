package api

import (
	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
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
		{Route: web.Route{Method: "GET", Path: "/v1/destinations", Owner: true, Handle: a.list},
			summary: "List destinations, without credentials", query: paging, answer: web.List[host.Destination]{}},
		{Route: web.Route{Method: "POST", Path: "/v1/destinations", Owner: true, Keyed: true, Handle: a.add},
			summary: "Keep a database or files up to date with what is collected", body: host.NewDestination{},
			answer: host.Destination{}, status: 201,
			codes: []string{"conflict", "destination_claimed", "destination_foreign", "destination_unavailable"}},
		{Route: web.Route{Method: "GET", Path: one, Owner: true, Handle: a.get},
			summary: "One destination, its tables, and how far behind they are", answer: host.Destination{}},
		{Route: web.Route{Method: "DELETE", Path: one, Owner: true, Keyed: true, Handle: a.remove},
			summary: "Forget a destination; its tables stay"},
		{Route: web.Route{Method: "POST", Path: one, Verb: "sync", Owner: true, Keyed: true, Handle: a.sync},
			summary: "Bring in everything that there is now, and answer when it is done", answer: host.Destination{}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "pause", Owner: true, Keyed: true, Handle: a.pause},
			summary: "Stop feeding a destination", answer: host.Destination{}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "resume", Owner: true, Keyed: true, Handle: a.resume},
			summary: "Go on feeding a destination", answer: host.Destination{}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "rotate", Owner: true, Keyed: true, Handle: a.rotate},
			summary: "Sign what is sent with another secret; the one before signs too for 24 hours", body: rotated{},
			answer: host.Destination{}, codes: []string{"conflict"}},
		{Route: web.Route{Method: "POST", Path: one, Verb: "rebuild", Owner: true, Keyed: true, Handle: a.rebuild},
			summary: "Remove tables of a destination and bring everything in anew", body: rebuilt{},
			answer: host.Destination{},
			codes:  []string{"destination_claimed", "destination_foreign", "destination_unavailable"}},
	})
}

// rotated is the body of a rotation.
type rotated struct {
	Secret string `json:"secret"`
}

// nameOf returns the destination name in the path.
func (a *destinationAPI) nameOf(c *fiber.Ctx) (string, error) {
	name, err := web.Param(c, "name")
	if err != nil || !abi.IsSlug(name) {
		return "", web.NotFound()
	}
	return name, nil
}

func (a *destinationAPI) list(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	all, err := a.destinations.Destinations(web.Context(c))
	if err != nil {
		return err
	}
	return listed(c, page, all, func(d host.Destination) string { return d.Name })
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

func (a *destinationAPI) get(c *fiber.Ctx) error {
	name, err := a.nameOf(c)
	if err != nil {
		return err
	}
	d, err := a.destinations.Destination(web.Context(c), name)
	if err != nil {
		return err
	}
	return web.JSON(c, 200, d)
}

func (a *destinationAPI) remove(c *fiber.Ctx) error {
	name, err := a.nameOf(c)
	if err != nil {
		return err
	}
	if err := a.destinations.RemoveDestination(web.Context(c), name); err != nil {
		return err
	}
	return web.Nothing(c)
}

func (a *destinationAPI) sync(c *fiber.Ctx) error {
	name, err := a.nameOf(c)
	if err != nil {
		return err
	}
	d, err := a.destinations.SyncDestination(web.Context(c), name)
	if err != nil {
		return err
	}
	return web.JSON(c, 200, d)
}

func (a *destinationAPI) pause(c *fiber.Ctx) error { return a.paused(c, true) }

func (a *destinationAPI) resume(c *fiber.Ctx) error { return a.paused(c, false) }

func (a *destinationAPI) paused(c *fiber.Ctx, paused bool) error {
	name, err := a.nameOf(c)
	if err != nil {
		return err
	}
	d, err := a.destinations.PauseDestination(web.Context(c), name, paused)
	if err != nil {
		return err
	}
	return web.JSON(c, 200, d)
}

func (a *destinationAPI) rotate(c *fiber.Ctx) error {
	name, err := a.nameOf(c)
	if err != nil {
		return err
	}
	var q rotated
	if err := web.Body(c, &q); err != nil {
		return err
	}
	d, err := a.destinations.RotateDestination(web.Context(c), name, q.Secret)
	if err != nil {
		return err
	}
	return web.JSON(c, 200, d)
}

func (a *destinationAPI) rebuild(c *fiber.Ctx) error {
	name, err := a.nameOf(c)
	if err != nil {
		return err
	}
	var q rebuilt
	if err := web.Body(c, &q); err != nil {
		return err
	}
	if (q.ConnectionID == "") != (q.Stream == "") {
		return web.Invalid(web.Field{Path: "stream", Rule: "together"})
	}
	d, err := a.destinations.RebuildDestination(web.Context(c), name, store.ConnectionID(q.ConnectionID),
		store.Stream(q.Stream))
	if err != nil {
		return err
	}
	return web.JSON(c, 200, d)
}
