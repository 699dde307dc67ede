package cli

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/audit"
)

// A keyring makes and revokes API keys: a running host does (client.Client), and
// the store when no host has it open (storedKeys).
type keyring interface {
	CreateKey(context.Context, client.NewKey) (client.Key, error)
	Keys(context.Context) ([]client.Key, error)
	// RevokeKey fails with store.ErrNotFound, or as a host says it, when there is none.
	RevokeKey(ctx context.Context, id string) error
}

var (
	_ keyring = (*client.Client)(nil)
	_ keyring = storedKeys{}
)

// keyring gives a command the keys: those of the running host, or of the store,
// which open opens.
func (c *command) keyring(ctx context.Context, open func(context.Context, func(*app.Host) error) error, do func(keyring) error) error {
	k, err := c.running(ctx)
	if err != nil {
		return err
	}
	if k != nil {
		defer k.Close()
		return do(k)
	}
	return open(ctx, func(h *app.Host) error {
		a, err := access.Open(ctx, access.Options{Store: h.Store})
		if err != nil {
			return err
		}
		return do(storedKeys{a.Keys, h})
	})
}

// newHere opens the store without a sandbox, and makes the data directory.
func (c *command) newHere(ctx context.Context, do func(*app.Host) error) error {
	if _, err := c.lasting(); err != nil {
		return err
	}
	return c.with(ctx, app.Options{NoSandbox: true}, do)
}

// storedKeys is a keyring over an open store.
type storedKeys struct {
	keys *access.Keys
	host *app.Host
}

// CreateKey makes a key as the owner, who may give every scope.
func (s storedKeys) CreateKey(ctx context.Context, q client.NewKey) (out client.Key, err error) {
	var n access.NewKey
	if err := recast(q, &n); err != nil {
		return out, err
	}
	key, secret, err := s.keys.Create(ctx, access.OfSocket(""), n, nil)
	var scope *access.ScopeError
	var field *access.FieldError
	if errors.As(err, &scope) || errors.As(err, &field) {
		return out, usagef("%w (docs/api.md lists the scopes)", err)
	}
	if err != nil {
		return out, err
	}
	if err := recast(key, &out); err != nil {
		return out, err
	}
	out.Secret = secret
	return out, s.audit(audit.KeyCreated, out.KeyID)
}

func (s storedKeys) Keys(ctx context.Context) ([]client.Key, error) {
	out := []client.Key{}
	const page = 500
	for after := ""; ; {
		keys, err := s.keys.List(ctx, after, page)
		if err != nil {
			return nil, err
		}
		var part []client.Key
		if err := recast(keys, &part); err != nil {
			return nil, err
		}
		if out = append(out, part...); len(keys) < page {
			return out, nil
		}
		after = keys[page-1].KeyID
	}
}

func (s storedKeys) RevokeKey(ctx context.Context, id string) error {
	if err := s.keys.Revoke(ctx, id); err != nil {
		return err
	}
	return s.audit(audit.KeyRevoked, id)
}

func (s storedKeys) audit(did audit.Action, id string) error {
	return s.host.Audit(audit.Event{Action: did, Target: id, Outcome: audit.Done})
}

// recast gives a value the type that the API has for it at the other end.
func recast(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}
