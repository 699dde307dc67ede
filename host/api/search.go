package api

import (
	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
)

// searchAPI has the route of search.
type searchAPI struct {
	find   lookup
	search host.Searcher
}

func (a *searchAPI) routes() []route {
	return documented("api.md#search", []route{
		{Route: web.Route{Method: "GET", Path: "/v1/search", Scope: access.RecordsRead, Handle: a.records},
			summary: "Records by the words in their texts, the best first", answer: host.SearchResult{}, query: []parameter{
				{name: "q", typ: "string", text: `word, "words in a row", begin* and -word; all must hold.`},
				{name: "connectionId", typ: "string", text: "Only this connection."},
				{name: "stream", typ: "string", text: "Only streams of this name."},
				{name: "limit", typ: "integer", text: "The most hits: 20 by default, at most 100."},
			}, codes: []string{"search_limit"}},
	})
}

func (a *searchAPI) records(c *fiber.Ctx) error {
	p := web.QueryOf(c)
	q := host.SearchQuery{Words: p.Text("q", 1000), ConnectionID: p.Text("connectionId", 64),
		Stream: p.Text("stream", 256), Limit: int(p.Int("limit", 0, 1, 100))}
	if err := p.Err(); err != nil {
		return err
	}
	ctx, done := web.ClientContext(c)
	defer done()
	var err error
	if q.Only, err = a.find.visibleIDs(ctx, c); err != nil {
		return err
	}
	found, err := a.search.Search(ctx, q)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return web.JSON(c, 200, found)
}
