package client

import (
	"context"
	"net/http"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Tables implements host.Queries. The host decides what may be seen; only is not sent.
func (c queryClient) Tables(ctx context.Context, _ []store.ConnectionID) ([]host.Table, error) {
	return all[host.Table](ctx, c.transport, at("tables"), nil)
}

// Copying implements host.Queries. The host decides what may be seen; only is not sent.
func (c queryClient) Copying(ctx context.Context, _ []store.ConnectionID) ([]host.Copying, error) {
	return all[host.Copying](ctx, c.transport, at("tables", "copying"), nil)
}

// Query implements host.Queries. The host decides what may be seen; q.Only is not sent.
// It waits as long as ctx lasts: the first query of a connection copies it.
func (c queryClient) Query(ctx context.Context, q host.Query) (found host.QueryResult, err error) {
	header, body, err := encode(q)
	if err != nil {
		return found, err
	}
	err = c.await(ctx, http.MethodPost, at("query"), nil, header, body, &found)
	return found, err
}
