package api

import (
	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// runParts are the parts of a start that brings a module, its signature or a
// recording along. run is the body as it is without them.
var runParts = []string{"run", "module", "signature", "replay"}

// readCreateRun reads the body of a start: JSON, or JSON among the parts of an upload.
func readCreateRun(c *fiber.Ctx) (*createRun, error) {
	q := &createRun{}
	if web.ContentType(c) != "multipart/form-data" {
		return q, web.Body(c, q)
	}
	parts, err := readParts(c, runParts, "module", "replay", "run")
	if err != nil {
		return nil, err
	}
	if err := web.Decode(parts["run"], q); err != nil {
		return nil, err
	}
	if q.Given == nil {
		q.Given = &host.Given{}
	}
	defer web.Wipe(c) // it may hold secrets
	q.Given.Module, q.Given.Signature, q.Given.Replay = parts["module"], parts["signature"], parts["replay"]
	return q, nil
}

// mayGive refuses what a principal could not have given a connection for good.
func mayGive(p *access.Principal, g *host.Given) error {
	if g == nil {
		return nil
	}
	if p.Restricted() {
		return web.NewProblem(0, "forbidden", "A key for some connections, or for tests, starts runs as they are configured.")
	}
	for _, need := range []access.Scope{access.ConnectorsManage, access.ConnectionsManage, access.GrantsApprove, access.SecretsWrite} {
		if !p.Allows(need) {
			return web.NewProblem(0, "forbidden", "Only who may install connectors, make connections, approve grants and set secrets starts a run with what is not stored.").With("scopeRequired", need)
		}
	}
	return nil
}

// recording hands over what a run recorded, once.
func (a *API) recording(c *fiber.Ctx) error {
	r, err := a.run(c)
	if err != nil {
		return err
	}
	out, err := a.Host.Recording(web.Context(c), store.RunID(r.ID))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return web.JSON(c, 200, out)
}

// timelinePage is how many stored events are handed over at once.
const timelinePage = 500

// storedEvents are events of a run as they are stored: E is store.Event, or for the
// description, which sees no MarshalJSON, any object.
type storedEvents[E any] struct {
	Events []E  `json:"events"`
	More   bool `json:"more"`
}

func (a *API) timeline(c *fiber.Ctx) error {
	r, err := a.run(c)
	if err != nil {
		return err
	}
	q := web.QueryOf(c)
	from := q.Int("from", 0, 0, 1<<53)
	if err := q.Err(); err != nil {
		return err
	}
	out := storedEvents[store.Event]{}
	if out.Events, err = a.Store.Events(web.Context(c), r.ID, uint64(from), timelinePage); err != nil {
		return err
	}
	out.More = len(out.Events) == timelinePage
	c.Set(fiber.HeaderCacheControl, "no-store")
	return web.JSON(c, 200, out)
}
