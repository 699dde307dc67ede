package app

import (
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

var _ host.Secrets = (*Service)(nil)

// SetSecret implements host.Secrets (A190). The value is wiped, whatever
// becomes of it.
func (s *Service) SetSecret(ctx context.Context, id store.ConnectionID, name string, value []byte) error {
	defer clear(value)
	_, _, m, err := s.configured(ctx, id)
	if err != nil {
		return asked(err)
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
	return s.host.keep(by(ctx, audit.Event{Action: audit.SecretSet, Target: string(id) + "/" + name, Outcome: audit.Done}),
		func(v *vault.Vault) error { return v.Set(string(id), name, value) })
}

// Secrets implements host.Secrets (A191).
func (s *Service) Secrets(ctx context.Context, id store.ConnectionID) ([]host.Secret, error) {
	v, err := s.view(ctx)
	if err != nil {
		return nil, err
	}
	c, err := v.connectionOf(id)
	if err != nil {
		return nil, err
	}
	return v.secrets(c, v.manifestOf(c), false), nil
}

// RemoveSecret implements host.Secrets (A192). store.ErrNotFound if there is
// none of that name.
func (s *Service) RemoveSecret(ctx context.Context, id store.ConnectionID, name string) error {
	if _, err := s.host.lasting(ctx, id); err != nil {
		return asked(err)
	}
	if vault.CheckNames(string(id), name) != nil {
		return invalid("name", "secret_unknown", "no secret can have this name")
	}
	return s.host.removeSecret(ctx, id, name)
}

func (h *Host) removeSecret(ctx context.Context, id store.ConnectionID, name string) error {
	return h.keep(by(ctx, audit.Event{Action: audit.SecretRemoved, Target: string(id) + "/" + name, Outcome: audit.Done}),
		func(v *vault.Vault) error { return v.Remove(string(id), name) })
}

// forgetSecrets removes all secrets of a connection.
func (h *Host) forgetSecrets(ctx context.Context, id store.ConnectionID) error {
	set, err := h.secretsSet()
	for name := range set[id] {
		err = errors.Join(err, h.removeSecret(ctx, id, name))
	}
	return err
}

// keep changes the vault and writes that down. No error of it holds a value.
func (h *Host) keep(e audit.Event, change func(*vault.Vault) error) error {
	if h.DataDir == "" {
		return host.Refuse("unavailable", "a store in memory keeps no secrets")
	}
	v, err := vault.Open(h.DataDir)
	if err != nil {
		return err
	}
	err = h.audited(e, func() error { return change(v) })
	switch {
	case errors.Is(err, vault.ErrNotFound):
		return notFound("secret")
	case errors.Is(err, vault.ErrInvalid):
		return invalid("name", "too_many", "a connection has at most %d secrets", vault.MaxPerConnection)
	}
	return err
}
