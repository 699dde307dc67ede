package api

import (
	"encoding/json"
	"strconv"

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

// requests lists what a run asked of servers. A page goes on after as many as the
// pages before had.
func (a *API) requests(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	r, err := a.run(c)
	if err != nil {
		return err
	}
	skip := 0
	if page.After != "" {
		if skip, err = strconv.Atoi(page.After); err != nil {
			return err // nobody else can have made it
		}
	}
	list, err := a.Host.Requests(web.Context(c), r.ID, skip, page.Limit)
	if err != nil {
		return err
	}
	next := ""
	if len(list) == page.Limit {
		next = strconv.Itoa(skip + page.Limit)
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return web.Listed(c, list, next)
}
