package client

import (
	"context"
	"net/http"
	"time"

	"github.com/sluicehost/sluice/host/access"
)

// CreateKey makes an API key. Only this answer has its secret.
func (c keyClient) CreateKey(ctx context.Context, q access.NewKey) (out access.MadeKey, err error) {
	return out, c.call(ctx, http.MethodPost, at("api-keys"), nil, q, &out)
}

// Keys lists API keys.
func (c keyClient) Keys(ctx context.Context) ([]access.Key, error) {
	return all[access.Key](ctx, c.transport, at("api-keys"), nil)
}

// RevokeKey revokes a key at once.
func (c keyClient) RevokeKey(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, at("api-keys", id), nil, nil, nil)
}

// A Login is a one-time login link.
type Login struct {
	URL       string    `json:"url"`
	PlainURL  string    `json:"plainUrl,omitempty"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Login makes a login link. Only the local socket may.
func (c keyClient) Login(ctx context.Context) (out Login, err error) {
	return out, c.call(ctx, http.MethodPost, "/ui/login-link", nil, nil, &out)
}
