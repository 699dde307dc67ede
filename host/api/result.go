package api

import (
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// result answers with the result value of a run that is over (runtime.md R10), as
// it was stored. The cursors in it are for those who may read state (A103).
func (a *API) result(c *fiber.Ctx) error {
	r, err := a.run(c)
	if err != nil {
		return err
	}
	if len(r.Result) == 0 {
		return web.NewProblem(0, "conflict", "The run is not over; it has no result yet.").With("runStatus", r.Status)
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	if web.Principal(c).Allows(access.StateRead) {
		return web.JSON(c, 200, r.Result) // escaped (S99)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.Result, &members); err != nil {
		return err
	}
	delete(members, "state")
	return web.JSON(c, 200, members)
}
