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

// LostHosts lists the hosts whose lease expired and that have not come back.
func (c hostClient) LostHosts(ctx context.Context) ([]host.Member, error) {
	var out list[host.Member]
	err := c.get(ctx, at("hosts", "lost"), nil, &out)
	return out.Data, err
}

// AdmittedHosts returns those that can open the vault.
func (c hostClient) AdmittedHosts(ctx context.Context) ([]host.AdmittedHost, error) {
	var out list[host.AdmittedHost]
	err := c.get(ctx, at("hosts", "admitted"), nil, &out)
	return out.Data, err
}

// admission is the code of a host.
type admission struct {
	Code string `json:"code"`
}

// AdmissionCode returns what admits the host that answers.
func (c hostClient) AdmissionCode(ctx context.Context) (string, error) {
	var out admission
	err := c.get(ctx, at("hosts", "code"), nil, &out)
	return out.Code, err
}

// AdmitHost admits a host to the vault, with the code that it shows.
func (c hostClient) AdmitHost(ctx context.Context, id, code string) error {
	return c.call(ctx, http.MethodPost, at("hosts", id, "admit"), nil, admission{code}, nil)
}

// RemoveHost removes a host from those that can open the vault.
func (c hostClient) RemoveHost(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, at("hosts", id, "admit"), nil, nil, nil)
}

// RotateVault encrypts all secrets under a new key.
func (c hostClient) RotateVault(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, at("hosts", "vault", "rotate"), nil, nil, nil)
}

// AcceptVault accepts the vault of a restored database.
func (c hostClient) AcceptVault(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, at("hosts", "vault", "accept"), nil, nil, nil)
}

// DrainHost sets whether a host is to start no more runs.
func (c hostClient) DrainHost(ctx context.Context, id string, on bool) (out host.Member, err error) {
	method := http.MethodPost
	if !on {
		method = http.MethodDelete
	}
	return out, c.call(ctx, method, at("hosts", id, "drain"), nil, nil, &out)
}
