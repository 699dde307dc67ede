package api

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/dashboard/access"
	"github.com/sluicehost/sluice/dashboard/control"
	"github.com/sluicehost/sluice/dashboard/web"
	"github.com/sluicehost/sluice/store"
)

// history is the answer of A201.
type history struct {
	Data       []control.Tick     `json:"data"`
	NextCursor *string            `json:"nextCursor"`
	Statistics control.Statistics `json:"statistics"`
}

// scheduleRoutes are A196 to A201.
func (a *API) scheduleRoutes() []route {
	of := "/v1/connections/:connectionId/schedule"
	return []route{
		{Route: web.Route{Method: "GET", Path: "/v1/schedules", Scope: access.ConnectionsRead, Handle: a.listSchedules},
			see: "api.md#schedules", summary: "List schedules", query: paging, answer: web.List[control.Schedule]{}},
		{Route: web.Route{Method: "PUT", Path: of, Scope: access.SchedulesManage, Keyed: true, Handle: a.putSchedule},
			see: "api.md#schedules", summary: "Say when a connection runs by itself", headers: []string{"If-Match"},
			body: control.ScheduleDefinition{}, answer: control.Schedule{}, also: []int{201}, codes: []string{"schedule_ineligible", "precondition_failed"}},
		{Route: web.Route{Method: "GET", Path: of, Scope: access.ConnectionsRead, Handle: a.getSchedule},
			see: "api.md#schedules", summary: "The schedule of a connection", answer: control.Schedule{}},
		{Route: web.Route{Method: "DELETE", Path: of, Scope: access.SchedulesManage, Keyed: true, Handle: a.deleteSchedule},
			see: "api.md#schedules", summary: "Remove a schedule; an active run goes on, history stays"},
		{Route: web.Route{Method: "POST", Path: of + "/pause", Scope: access.SchedulesManage, Keyed: true, Handle: a.pauseSchedule},
			see: "api.md#schedules", summary: "Stop the ticks of a schedule", answer: control.Schedule{}},
		{Route: web.Route{Method: "POST", Path: of + "/resume", Scope: access.SchedulesManage, Keyed: true, Handle: a.resumeSchedule},
			see: "api.md#schedules", summary: "Let a schedule tick again", answer: control.Schedule{}},
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
	all = slices.DeleteFunc(all, func(s control.Schedule) bool { return !in.has(store.ConnectionID(s.ConnectionID)) })
	return listed(c, page, all, func(s control.Schedule) string { return s.ConnectionID })
}

func (a *API) putSchedule(c *fiber.Ctx) error {
	id, err := a.connectionID(c)
	if err != nil {
		return err
	}
	var q control.ScheduleDefinition
	if err := web.Body(c, &q); err != nil {
		return err
	}
	revision, err := web.IfMatch(c)
	if err != nil {
		return err
	}
	s, created, err := a.Host.PutSchedule(web.Context(c), web.Who(c), id, q, revision)
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
	if err := a.Host.DeleteSchedule(web.Context(c), web.Who(c), id); err != nil {
		return err
	}
	return web.Nothing(c)
}

func (a *API) pauseSchedule(c *fiber.Ctx) error {
	id, err := a.connectionID(c)
	if err != nil {
		return err
	}
	s, err := a.Host.PauseSchedule(web.Context(c), web.Who(c), id)
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
	s, err := a.Host.ResumeSchedule(web.Context(c), web.Who(c), id)
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
		ticks = []control.Tick{}
	}
	out := history{Data: ticks, NextCursor: web.NextCursor(c, strings.Clone(next))}
	if out.Statistics, err = a.Host.ScheduleStatistics(web.Context(c), id); err != nil {
		return err
	}
	return web.JSON(c, 200, out)
}

func idOf(c control.Connection) store.ConnectionID { return store.ConnectionID(c.ConnectionID) }
