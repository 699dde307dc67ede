package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sluicehost/sluice/host"
)

type authorizationClient struct{ *transport }

var _ host.Authorizations = (*Client)(nil)

// Authorize starts an OAuth authorization that obtains the tokens of a secret.
func (c authorizationClient) Authorize(ctx context.Context,
	q host.NewAuthorization) (out host.Authorization, err error) {
	authorization, err := json.Marshal(q) // #nosec G117 -- the name of a secret
	if err != nil {
		return out, fmt.Errorf("encode request: %w", err)
	}
	parts := []part{{"authorization", authorization}}
	if q.Overrides != nil {
		parts = append(parts, part{"module", q.Overrides.Module}, part{"signature", q.Overrides.Signature})
	}
	_, err = c.upload(ctx, at("authorizations"), &out, parts...)
	return out, err
}

// Authorization returns an authorization; it waits a while for its state to differ from
// after, unless that is "".
func (c authorizationClient) Authorization(ctx context.Context, id, after string) (out host.Authorization, err error) {
	q := url.Values{}
	if after != "" {
		q.Set("after", after)
	}
	return out, c.get(ctx, at("authorizations", id), q, &out)
}

// CancelAuthorization cancels an authorization.
func (c authorizationClient) CancelAuthorization(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, at("authorizations", id), nil, nil, nil)
}
