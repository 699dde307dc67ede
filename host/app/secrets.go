package app

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// secrets implements host.Secrets.
type secrets struct {
	connections *connectionStore
	secrets     *secretStore
	overviews   *overviews
}

var _ host.Secrets = (*secrets)(nil)

// SetSecret implements host.Secrets. It always wipes value.
func (ss *secrets) SetSecret(ctx context.Context, id store.ConnectionID, name string, value []byte) error {
	defer clear(value)
	_, _, m, err := ss.overviews.configured(ctx, id)
	if err != nil {
		return asRefusal(err)
	}
	fields := run.SecretFields(m)
	i := slices.IndexFunc(fields, func(f abi.SecretField) bool { return f.Name == name })
	switch {
	case i < 0 || vault.CheckNames(string(id), name) != nil:
		return invalid("name", "secret_unknown", "the connector asks for no secret of this name")
	case fields[i].OAuth != nil:
		return invalid("name", "secret_authorized", "this secret is authorized and not typed")
	case len(value) == 0 || len(value) > vault.MaxValue:
		return invalid("value", "length", "want 1 to %d bytes", vault.MaxValue)
	case !utf8.Valid(value):
		return invalid("value", "utf8", "want UTF-8 text, which is all that a connector can be given")
	case isAuthorization(value):
		return invalid("value", "authorization", "this is an authorization; the connector asks for a secret")
	}
	return ss.secrets.change(by(ctx,
		audit.Event{Action: audit.SecretSet, Target: string(id) + "/" + name, Outcome: audit.Done}),
		func(v vault.Keeper) error { return v.Set(string(id), name, value) })
}

// Secrets implements host.Secrets.
func (ss *secrets) Secrets(ctx context.Context, id store.ConnectionID) ([]host.Secret, error) {
	v, err := ss.overviews.take(ctx)
	if err != nil {
		return nil, err
	}
	c, err := v.connectionOf(id)
	if err != nil {
		return nil, err
	}
	return v.secrets(c, v.manifestOf(c), false), nil
}

// RemoveSecret implements host.Secrets. The error is store.ErrNotFound if there is no such secret.
func (ss *secrets) RemoveSecret(ctx context.Context, id store.ConnectionID, name string) error {
	if _, err := ss.connections.permanent(ctx, id); err != nil {
		return asRefusal(err)
	}
	if vault.CheckNames(string(id), name) != nil {
		return invalid("name", "secret_unknown", "no secret can have this name")
	}
	return ss.secrets.remove(ctx, id, name)
}
