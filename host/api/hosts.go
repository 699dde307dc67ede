package api

import (
	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// hostAPI has the routes of the hosts that share a store.
type hostAPI struct{ hosts host.Hosts }

func (a *hostAPI) routes() []route {
	return documented("api.md#hosts", []route{
		{Route: web.Route{Method: "GET", Path: "/v1/hosts", Scope: access.AuditRead, Whole: true, Handle: a.listHosts},
			summary: "The hosts that share the store, by id", answer: web.List[host.Member]{}},
		{Route: web.Route{Method: "GET", Path: "/v1/hosts/lost", Scope: access.AuditRead, Whole: true, Handle: a.lostHosts},
			summary: "The hosts that were not heard of and have not been there since, by id", answer: web.List[host.Member]{}},
		{Route: web.Route{Method: "POST", Path: "/v1/hosts/:hostId/drain", Owner: true, Keyed: true, Handle: a.drain(true)},
			summary: "Let a host start no more runs; those that it has go on", answer: host.Member{}, codes: []string{"conflict"}},
		{Route: web.Route{Method: "DELETE", Path: "/v1/hosts/:hostId/drain", Owner: true, Keyed: true, Handle: a.drain(false)},
			summary: "Let a host start runs again", answer: host.Member{}, codes: []string{"conflict"}},
	})
}

func (a *hostAPI) listHosts(c *fiber.Ctx) error {
	all, err := a.hosts.Hosts(web.Context(c))
	if err != nil {
		return err
	}
	return web.JSON(c, 200, web.List[host.Member]{Data: all})
}

func (a *hostAPI) lostHosts(c *fiber.Ctx) error {
	all, err := a.hosts.LostHosts(web.Context(c))
	if err != nil {
		return err
	}
	return web.JSON(c, 200, web.List[host.Member]{Data: append([]host.Member{}, all...)})
}

func (a *hostAPI) drain(on bool) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := web.Param(c, "hostId")
		if err != nil {
			return err
		}
		m, err := a.hosts.DrainHost(web.Context(c), id, on)
		if err != nil {
			return err
		}
		return web.JSON(c, 200, m)
	}
}
