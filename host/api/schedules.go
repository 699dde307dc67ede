package api

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// history is the answer of A201.
type history struct {
	Data       []host.Tick     `json:"data"`
	NextCursor *string         `json:"nextCursor"`
	Statistics host.Statistics `json:"statistics"`
}

// scheduleRoutes are A196 to A201.
func (a *API) scheduleRoutes() []route {
	of := "/v1/connections/:connectionId/schedule"
	return []route{
		{Route: web.Route{Method: "GET", Path: "/v1/schedules", Scope: access.ConnectionsRead, Handle: a.listSchedules},
			see: "api.md#schedules", summary: "List schedules", query: paging, answer: web.List[host.Schedule]{}},
		{Route: web.Route{Method: "PUT", Path: of, Scope: access.SchedulesManage, Keyed: true, Handle: a.putSchedule},
			see: "api.md#schedules", summary: "Say when a connection runs by itself", headers: []string{"If-Match"},
			body: host.ScheduleDefinition{}, answer: host.Schedule{}, also: []int{201}, codes: []string{"schedule_ineligible", "precondition_failed"}},
		{Route: web.Route{Method: "GET", Path: of, Scope: access.ConnectionsRead, Handle: a.getSchedule},
			see: "api.md#schedules", summary: "The schedule of a connection", answer: host.Schedule{}},
		{Route: web.Route{Method: "DELETE", Path: of, Scope: access.SchedulesManage, Keyed: true, Handle: a.deleteSchedule},
			see: "api.md#schedules", summary: "Remove a schedule; an active run goes on, history stays"},
		{Route: web.Route{Method: "POST", Path: of + "/pause", Scope: access.SchedulesManage, Keyed: true, Handle: a.pauseSchedule},
			see: "api.md#schedules", summary: "Stop the ticks of a schedule", answer: host.Schedule{}},
		{Route: web.Route{Method: "POST", Path: of + "/resume", Scope: access.SchedulesManage, Keyed: true, Handle: a.resumeSchedule},
			see: "api.md#schedules", summary: "Let a schedule tick again", answer: host.Schedule{}},
		{Route: web.Route{Method: "GET", Path: of + "/history", Scope: access.RunsRead, Handle: a.scheduleHistory},
			see: "api.md#schedules", summary: "What a schedule did, newest first", query: paging, answer: history{}},
	}
}

func (a *API) listSchedules(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	all, err := a.Host.Schedules(web.Context(c))
	if err != nil {
		return err
	}
	in, err := a.sight(c)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(s host.Schedule) bool { return !in.has(store.ConnectionID(s.ConnectionID)) })
	return listed(c, page, all, func(s host.Schedule) string { return s.ConnectionID })
}

func (a *API) putSchedule(c *fiber.Ctx) error {
	id, err := a.connectionID(c)
	if err != nil {
		return err
	}
	var q host.ScheduleDefinition
	if err := web.Body(c, &q); err != nil {
		return err
	}
	revision, err := web.IfMatch(c)
	if err != nil {
		return err
	}
	s, created, err := a.Host.PutSchedule(web.Context(c), id, q, revision)
	switch {
	case err != nil:
		return err
	case created:
		return web.Created(c, "/v1/connections/"+string(id)+"/schedule", s)
	}
	return web.JSON(c, 200, s)
}

func (a *API) getSchedule(c *fiber.Ctx) error {
	id, err := a.connectionID(c)
	if err != nil {
		return err
	}
	s, err := a.Host.Schedule(web.Context(c), id)
	if err != nil {
		return err
	}
	return web.JSON(c, 200, s)
}

func (a *API) deleteSchedule(c *fiber.Ctx) error {
	id, err := a.connectionID(c)
	if err != nil {
		return err
	}
	if err := a.Host.DeleteSchedule(web.Context(c), id); err != nil {
		return err
	}
	return web.Nothing(c)
}

func (a *API) pauseSchedule(c *fiber.Ctx) error {
	id, err := a.connectionID(c)
	if err != nil {
		return err
	}
	s, err := a.Host.PauseSchedule(web.Context(c), id)
	if err != nil {
		return err
	}
	return web.JSON(c, 200, s)
}

func (a *API) resumeSchedule(c *fiber.Ctx) error {
	id, err := a.connectionID(c)
	if err != nil {
		return err
	}
	s, err := a.Host.ResumeSchedule(web.Context(c), id)
	if err != nil {
		return err
	}
	return web.JSON(c, 200, s)
}

func (a *API) scheduleHistory(c *fiber.Ctx) error {
	id, err := a.connectionID(c)
	if err != nil {
		return err
	}
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	ticks, next, err := a.Host.ScheduleHistory(web.Context(c), id, page.After, page.Limit)
	if err != nil {
		return err
	}
	if ticks == nil {
		ticks = []host.Tick{}
	}
	out := history{Data: ticks, NextCursor: web.NextCursor(c, strings.Clone(next))}
	if out.Statistics, err = a.Host.ScheduleStatistics(web.Context(c), id); err != nil {
		return err
	}
	return web.JSON(c, 200, out)
}

func idOf(c host.Connection) store.ConnectionID { return store.ConnectionID(c.ConnectionID) }
