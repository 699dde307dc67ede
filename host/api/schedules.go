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

// history is a page of past ticks with the counts of all ticks.
type history struct {
	Data       []host.Tick     `json:"data"`
	NextCursor *string         `json:"nextCursor"`
	Statistics host.Statistics `json:"statistics"`
}

// scheduleAPI has the routes of schedules.
type scheduleAPI struct {
	find      lookup
	schedules host.Schedules
}

func (a *scheduleAPI) routes() []route {
	of := "/v1/connections/:connectionId/schedule"
	return documented("api.md#schedules", []route{
		{Route: web.Route{Method: "GET", Path: "/v1/schedules", Scope: access.ConnectionsRead, Handle: a.listSchedules},
			summary: "List schedules", query: paging, answer: web.List[host.Schedule]{}},
		{Route: web.Route{Method: "PUT", Path: of, Scope: access.SchedulesManage, Keyed: true, Handle: a.putSchedule},
			summary: "Say when a connection runs by itself", headers: []string{"If-Match"},
			body: host.ScheduleDefinition{}, answer: host.Schedule{}, also: []int{201},
			codes: []string{"schedule_ineligible", "precondition_failed"}},
		{Route: web.Route{Method: "GET", Path: of, Scope: access.ConnectionsRead,
			Handle: answer(a.find.connectionID, a.schedules.Schedule)},
			summary: "The schedule of a connection", answer: host.Schedule{}},
		{Route: web.Route{Method: "DELETE", Path: of, Scope: access.SchedulesManage, Keyed: true,
			Handle: done(a.find.connectionID, a.schedules.DeleteSchedule)},
			summary: "Remove a schedule; an active run goes on, history stays"},
		{Route: web.Route{Method: "POST", Path: of + "/pause", Scope: access.SchedulesManage, Keyed: true,
			Handle: answer(a.find.connectionID, a.schedules.PauseSchedule)},
			summary: "Stop the ticks of a schedule", answer: host.Schedule{}},
		{Route: web.Route{Method: "POST", Path: of + "/resume", Scope: access.SchedulesManage, Keyed: true,
			Handle: answer(a.find.connectionID, a.schedules.ResumeSchedule)},
			summary: "Let a schedule tick again", answer: host.Schedule{}},
		{Route: web.Route{Method: "GET", Path: of + "/history", Scope: access.RunsRead, Handle: a.scheduleHistory},
			summary: "What a schedule did, newest first", query: paging, answer: history{}},
	})
}

func (a *scheduleAPI) listSchedules(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	all, err := a.schedules.Schedules(web.Context(c))
	if err != nil {
		return err
	}
	in, err := a.find.visible(c)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(s host.Schedule) bool { return !in.has(store.ConnectionID(s.ConnectionID)) })
	return listed(c, page, all, func(s host.Schedule) string { return s.ConnectionID })
}

func (a *scheduleAPI) putSchedule(c *fiber.Ctx) error {
	id, err := a.find.connectionID(c)
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
	s, created, err := a.schedules.PutSchedule(web.Context(c), id, q, revision)
	switch {
	case err != nil:
		return err
	case created:
		return web.Created(c, "/v1/connections/"+string(id)+"/schedule", s)
	}
	return web.JSON(c, 200, s)
}

func (a *scheduleAPI) scheduleHistory(c *fiber.Ctx) error {
	id, err := a.find.connectionID(c)
	if err != nil {
		return err
	}
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	ticks, next, err := a.schedules.ScheduleHistory(web.Context(c), id, page.After, page.Limit)
	if err != nil {
		return err
	}
	if ticks == nil {
		ticks = []host.Tick{}
	}
	out := history{Data: ticks, NextCursor: web.NextCursor(c, strings.Clone(next))}
	if out.Statistics, err = a.schedules.ScheduleStatistics(web.Context(c), id); err != nil {
		return err
	}
	return web.JSON(c, 200, out)
}
