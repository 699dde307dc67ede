package client

import (
	"context"
	"net/http"

	"github.com/sluicehost/sluice/host"
)

// Hosts lists the hosts that share the store.
func (c hostClient) Hosts(ctx context.Context) ([]host.Member, error) {
	var out list[host.Member]
	err := c.get(ctx, at("hosts"), nil, &out)
	return out.Data, err
}

// LostHosts lists those that were not heard of and have not been there since.
func (c hostClient) LostHosts(ctx context.Context) ([]host.Member, error) {
	var out list[host.Member]
	err := c.get(ctx, at("hosts", "lost"), nil, &out)
	return out.Data, err
}

// DrainHost sets whether a host is to start no more runs.
func (c hostClient) DrainHost(ctx context.Context, id string, on bool) (out host.Member, err error) {
	method := http.MethodPost
	if !on {
		method = http.MethodDelete
	}
	return out, c.call(ctx, method, at("hosts", id, "drain"), nil, nil, &out)
}
