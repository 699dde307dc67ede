package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sluicehost/sluice/host"
)

// searchClient implements host.Searcher.
type searchClient struct{ *transport }

// Search implements host.Searcher. The host decides what may be seen; q.Only is not sent. It
// waits as long as ctx lasts: the first search of a connection makes its index.
func (c searchClient) Search(ctx context.Context, q host.SearchQuery) (found host.SearchResult, err error) {
	query := url.Values{"q": {q.Words}}
	if q.ConnectionID != "" {
		query.Set("connectionId", q.ConnectionID)
	}
	if q.Stream != "" {
		query.Set("stream", q.Stream)
	}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	err = c.await(ctx, http.MethodGet, at("search"), query, nil, nil, &found)
	return found, err
}
