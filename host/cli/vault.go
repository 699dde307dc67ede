package cli

import (
	"context"

	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// secrets are where sluice secret puts a value: the vault in the data directory,
// which a running host shares, or a host elsewhere.
type secrets interface {
	set(ctx context.Context, connection, name string, value []byte) error
	remove(ctx context.Context, connection, name string) error
	// list has those of one connection, or of all when none is named.
	list(ctx context.Context, of []string) ([]secretLine, error)
}

func (c secretCommands) vault(context.Context) (secrets, error) {
	if c.url != "" {
		k, err := c.remote()
		return secretsThere{k}, err
	}
	v, err := app.OpenVault(c.store)
	return secretsHere{v}, err
}

type secretsHere struct{ *app.Secrets }

func (s secretsHere) set(_ context.Context, connection, name string, value []byte) error {
	return s.Set(connection, name, value)
}

func (s secretsHere) remove(_ context.Context, connection, name string) error {
	return s.Remove(connection, name)
}

func (s secretsHere) list(_ context.Context, of []string) ([]secretLine, error) {
	all, err := s.List()
	lines := []secretLine{}
	for _, e := range all {
		if e.Connection == vault.Host || len(of) > 0 && e.Connection != of[0] {
			continue
		}
		lines = append(lines, secretLine{store.ConnectionID(e.Connection), e.Name, store.Time(e.Set), app.IsAuthorization(s.Vault, e), e.Set})
	}
	return lines, err
}

type secretsThere struct{ *client.Client }

func (s secretsThere) set(ctx context.Context, connection, name string, value []byte) error {
	return s.SetSecret(ctx, store.ConnectionID(connection), name, value)
}

func (s secretsThere) remove(ctx context.Context, connection, name string) error {
	return s.RemoveSecret(ctx, store.ConnectionID(connection), name)
}

func (s secretsThere) list(ctx context.Context, of []string) ([]secretLine, error) {
	if len(of) == 0 {
		all, err := s.Connections(ctx)
		if err != nil {
			return nil, err
		}
		for _, k := range all {
			of = append(of, k.ConnectionID)
		}
	}
	lines := []secretLine{}
	for _, id := range of {
		found, err := s.Secrets(ctx, store.ConnectionID(id))
		if err != nil {
			return nil, err
		}
		for _, x := range found {
			if x.Set && x.SetAt != nil {
				lines = append(lines, secretLine{store.ConnectionID(id), x.Name, store.Time(*x.SetAt), x.OAuth, *x.SetAt})
			}
		}
	}
	return lines, nil
}
