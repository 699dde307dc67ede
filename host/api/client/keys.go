package client

import (
	"context"
	"net/http"
	"time"
)

// A Key is what may be known of an API key. Secret is set once, by CreateKey.
type Key struct {
	KeyID         string     `json:"keyId"`
	Name          string     `json:"name"`
	Prefix        string     `json:"prefix"`
	Scopes        []string   `json:"scopes"`
	Mode          string     `json:"mode"`
	ConnectionIDs []string   `json:"connectionIds,omitempty"`
	CreatedAt     time.Time  `json:"createdAt"`
	CreatedBy     string     `json:"createdBy"`
	ExpiresAt     *time.Time `json:"expiresAt,omitempty"`
	LastUsedAt    *time.Time `json:"lastUsedAt,omitempty"`
	Status        string     `json:"status"`
	Secret        string     `json:"key,omitempty"`
}

// A NewKey is a key to be made.
type NewKey struct {
	Name          string     `json:"name"`
	Scopes        []string   `json:"scopes"`
	Mode          string     `json:"mode"`
	ExpiresAt     *time.Time `json:"expiresAt,omitempty"`
	ConnectionIDs []string   `json:"connectionIds,omitempty"`
}

// CreateKey makes an API key; its secret is in the answer and nowhere else.
func (c keyClient) CreateKey(ctx context.Context, q NewKey) (out Key, err error) {
	return out, c.call(ctx, http.MethodPost, at("api-keys"), nil, q, &out)
}

// Keys lists API keys.
func (c keyClient) Keys(ctx context.Context) ([]Key, error) {
	return all[Key](ctx, c.transport, at("api-keys"), nil)
}

// RevokeKey ends a key at once.
func (c keyClient) RevokeKey(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, at("api-keys", id), nil, nil, nil)
}

// A Login is a one-time login link.
type Login struct {
	URL       string    `json:"url"`
	PlainURL  string    `json:"plainUrl,omitempty"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Login makes a login link. The local socket alone may.
func (c keyClient) Login(ctx context.Context) (out Login, err error) {
	return out, c.call(ctx, http.MethodPost, "/ui/login-link", nil, nil, &out)
}
