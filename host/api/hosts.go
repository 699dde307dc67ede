package api

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// hostAPI has the routes of the hosts that share a store.
type hostAPI struct{ hosts host.Hosts }

func (a *hostAPI) routes() []route {
	return documented("api.md#hosts", []route{
		{Route: web.Route{Method: "GET", Path: "/v1/hosts", Scope: access.AuditRead, Whole: true,
			Handle: listAll(a.hosts.Hosts)},
			summary: "The hosts that share the store, by id", answer: web.List[host.Member]{}},
		{Route: web.Route{Method: "GET", Path: "/v1/hosts/lost", Scope: access.AuditRead, Whole: true,
			Handle: listAll(a.hosts.LostHosts)},
			summary: "The hosts that were not heard of and have not been there since, by id", answer: web.List[host.Member]{}},
		{Route: web.Route{Method: "POST", Path: "/v1/hosts/:hostId/drain", Owner: true, Keyed: true,
			Handle: answer(idIn("hostId"), a.drain(true))},
			summary: "Let a host start no more runs; those that it has go on", answer: host.Member{},
			codes: []string{"conflict"}},
		{Route: web.Route{Method: "DELETE", Path: "/v1/hosts/:hostId/drain", Owner: true, Keyed: true,
			Handle: answer(idIn("hostId"), a.drain(false))},
			summary: "Let a host start runs again", answer: host.Member{}, codes: []string{"conflict"}},
		{Route: web.Route{Method: "GET", Path: "/v1/hosts/admitted", Owner: true, Whole: true,
			Handle: listAll(a.hosts.AdmittedHosts)},
			summary: "The hosts that can open the vault, by id, also those that are not there",
			answer:  web.List[host.AdmittedHost]{}},
		{Route: web.Route{Method: "GET", Path: "/v1/hosts/code", Owner: true, Handle: a.code},
			summary: "What admits this host to the vault; only its owner may know it", answer: admission{},
			codes: []string{"conflict"}},
		{Route: web.Route{Method: "POST", Path: "/v1/hosts/:hostId/admit", Owner: true, Handle: a.admit},
			summary: "Admit a host to the vault, with the code that it shows", body: admission{},
			codes: []string{"conflict", "unavailable"}},
		{Route: web.Route{Method: "DELETE", Path: "/v1/hosts/:hostId/admit", Owner: true, Keyed: true,
			Handle: done(idIn("hostId"), a.hosts.RemoveHost)},
			summary: "Remove a host from the vault, and encrypt all secrets anew for the others",
			codes:   []string{"conflict", "unavailable"}},
		{Route: web.Route{Method: "POST", Path: "/v1/hosts/vault/rotate", Owner: true, Handle: a.rotate},
			summary: "Encrypt all secrets of the vault under a new key", codes: []string{"conflict", "unavailable"}},
		{Route: web.Route{Method: "POST", Path: "/v1/hosts/vault/accept", Owner: true, Handle: a.accept},
			summary: "Go on with the vault of a database that was restored", codes: []string{"conflict", "unavailable"}},
	})
}

// admission is the admission code of a host.
type admission struct {
	Code string `json:"code"`
}

func (a *hostAPI) drain(on bool) func(context.Context, string) (host.Member, error) {
	return func(ctx context.Context, id string) (host.Member, error) { return a.hosts.DrainHost(ctx, id, on) }
}

func (a *hostAPI) code(c *fiber.Ctx) error {
	code, err := a.hosts.AdmissionCode(web.Context(c))
	return web.Answer(c, admission{code}, err)
}

func (a *hostAPI) admit(c *fiber.Ctx) error {
	id, err := web.ID(c, "hostId")
	if err != nil {
		return err
	}
	var q admission
	if err := web.Body(c, &q); err != nil {
		return err
	}
	return web.Done(c, a.hosts.AdmitHost(web.Context(c), id, q.Code))
}

func (a *hostAPI) rotate(c *fiber.Ctx) error { return web.Done(c, a.hosts.RotateVault(web.Context(c))) }

func (a *hostAPI) accept(c *fiber.Ctx) error { return web.Done(c, a.hosts.AcceptVault(web.Context(c))) }
