package api

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// A sight is what a principal may know of (A24, A26), found out once for an
// answer about many things.
type sight struct {
	p     *access.Principal
	tests map[store.ConnectionID]bool // those in mode test; nil unless the key is for tests
}

func (a *API) sight(c *fiber.Ctx) (sight, error) {
	s := sight{p: web.Principal(c)}
	if !s.p.Test {
		return s, nil
	}
	all, err := a.Host.Connections(web.Context(c))
	if err != nil {
		return s, err
	}
	s.tests = map[store.ConnectionID]bool{}
	for _, x := range all {
		if usable(s.p, x) == nil {
			s.tests[idOf(x)] = true
		}
	}
	return s, nil
}

// has reports whether things of a connection are shown.
func (s sight) has(id store.ConnectionID) bool {
	return s.p.SeesConnection(id) && (s.tests == nil || s.tests[id] || conformance(id))
}

// known is a connector without the connections that are not shown.
func (s sight) known(x host.Connector) host.Connector {
	x.Connections = slices.DeleteFunc(append([]host.ConnectionRef{}, x.Connections...), func(r host.ConnectionRef) bool {
		return !s.has(store.ConnectionID(r.ConnectionID))
	})
	return x
}
