package api

import (
	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// queryAPI has the routes of SQL over records. A key sees the same connections as elsewhere, and no
// others exist for it.
type queryAPI struct {
	find    lookup
	queries host.Queries
}

func (a *queryAPI) routes() []route {
	return documented("api.md#queries", []route{
		{Route: web.Route{Method: "GET", Path: "/v1/tables", Scope: access.RecordsRead, Handle: a.tables},
			summary: "The tables that queries may name, with their columns", query: paging, answer: web.List[host.Table]{}},
		{Route: web.Route{Method: "GET", Path: "/v1/tables/copying", Scope: access.RecordsRead, Handle: a.copying},
			summary: "How far the copies are that queries wait for", query: paging, answer: web.List[host.Copying]{}},
		{Route: web.Route{Method: "POST", Path: "/v1/query", Scope: access.RecordsRead, Handle: a.query},
			summary: "Run one SELECT over what was collected", body: host.Query{}, answer: host.QueryResult{},
			codes: []string{"query_invalid", "query_denied", "query_limit"}},
	})
}

func (a *queryAPI) tables(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	ctx, done := web.ClientContext(c)
	defer done()
	only, err := a.find.visibleIDs(ctx, c)
	if err != nil {
		return err
	}
	all, err := a.queries.Tables(ctx, only)
	if err != nil {
		return err
	}
	return listed(c, page, all, func(t host.Table) string { return t.Name })
}

func (a *queryAPI) copying(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	ctx := web.Context(c)
	only, err := a.find.visibleIDs(ctx, c)
	if err != nil {
		return err
	}
	all, err := a.queries.Copying(ctx, only)
	if err != nil {
		return err
	}
	return listed(c, page, all, func(t host.Copying) string { return t.ConnectionID })
}

func (a *queryAPI) query(c *fiber.Ctx) error {
	var q host.Query
	if err := web.Body(c, &q); err != nil {
		return err
	}
	ctx, done := web.ClientContext(c)
	defer done()
	var err error
	if q.Only, err = a.find.visibleIDs(ctx, c); err != nil {
		return err
	}
	found, err := a.queries.Query(ctx, q)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return web.JSON(c, 200, found)
}
