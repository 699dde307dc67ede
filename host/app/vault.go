package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// secretStore reads and changes the secrets of connections.
type secretStore struct{ *directory }

// ErrNoVault is returned for a store in memory, which keeps no secrets.
var ErrNoVault = errors.New("a memory: store keeps no secrets; name another with --store badger:DIR")

// OpenVault opens the vault beside a store. It neither opens nor locks the store, so it may be used while runs
// are active. A secret may be set before its connection exists. Changes are recorded in the audit log.
func OpenVault(store string) (*AuditedVault, error) {
	dir, err := DataDir(store)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, ErrNoVault
	}
	v, err := vault.Open(dir)
	if err != nil {
		return nil, err
	}
	l, err := audit.Open(dir)
	if err != nil {
		return nil, err
	}
	return &AuditedVault{v, l}, nil
}

// ofRun returns the secrets of a run: the given ones, and the other declared ones from the vault. A secret that
// cannot be read refuses the start; one that is not set is left out.
func (ss *secretStore) ofRun(m *abi.Manifest, id store.ConnectionID,
	given map[string]string) (map[string]string, error) {
	if ss.DataDir == "" {
		return given, nil
	}
	out := map[string]string{}
	maps.Copy(out, given)
	for _, f := range run.SecretFields(m) {
		if _, ok := out[f.Name]; ok {
			continue
		}
		value, ok, err := ss.stored(id, f.Name)
		if err != nil {
			if closed(err) {
				return nil, &run.Refusal{Code: "unavailable", Message: err.Error()}
			}
			r := refusal("secret_missing", fmt.Errorf("read stored secret: %w", err))
			r.Details = map[string]any{"secret": f.Name}
			return nil, r
		}
		if ok && f.OAuth == nil && isAuthorization([]byte(value)) {
			r := refusal("secret_missing",
				fmt.Errorf("what is stored as secret %s of %s is an authorization, and the connector asks for a secret; store one with sluice secret set %s %s", f.Name, id, id, f.Name))
			r.Details = map[string]any{"secret": f.Name}
			return nil, r
		}
		if ok {
			out[f.Name] = value
		}
	}
	return out, nil
}

// stored returns a secret from the vault as a string, which is what runs take. The vault's own copy is wiped.
func (ss *secretStore) stored(id store.ConnectionID, name string) (value string, ok bool, err error) {
	v, err := ss.vault()
	if err != nil {
		return "", false, err
	}
	s, err := v.Get(string(id), name)
	if errors.Is(err, vault.ErrNotFound) || errors.Is(err, vault.ErrInvalid) { // no such name can be set
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer s.Wipe()
	s.Use(func(b []byte) { value = string(b) })
	return value, true, nil
}

// set returns when each secret was set, by connection and name.
func (ss *secretStore) set() (map[store.ConnectionID]map[string]time.Time, error) {
	out := map[store.ConnectionID]map[string]time.Time{}
	if ss.DataDir == "" {
		return out, nil
	}
	v, err := ss.vault()
	if err != nil {
		return nil, err
	}
	all, err := v.List()
	for _, e := range all {
		id := store.ConnectionID(e.Connection)
		if out[id] == nil {
			out[id] = map[string]time.Time{}
		}
		out[id][e.Name] = e.Set
	}
	return out, err
}

func (ss *secretStore) remove(ctx context.Context, id store.ConnectionID, name string) error {
	return ss.change(by(ctx,
		audit.Event{Action: audit.SecretRemoved, Target: string(id) + "/" + name, Outcome: audit.Done}),
		func(v vault.Keeper) error { return v.Remove(string(id), name) })
}

// forget removes all secrets of a connection.
func (ss *secretStore) forget(ctx context.Context, id store.ConnectionID) error {
	set, err := ss.set()
	for name := range set[id] {
		err = errors.Join(err, ss.remove(ctx, id, name))
	}
	return err
}

// change changes the vault and records that in the audit log. Its errors hold no values.
func (ss *secretStore) change(e audit.Event, change func(vault.Keeper) error) error {
	if ss.DataDir == "" {
		return host.Refuse("unavailable", "a store in memory keeps no secrets")
	}
	v, err := ss.vault()
	if err != nil {
		return err
	}
	err = ss.audited(e, func() error { return change(v) })
	switch {
	case closed(err):
		return host.Refuse("unavailable", "%v", err)
	case errors.Is(err, vault.ErrNotFound):
		return notFound("secret")
	case errors.Is(err, vault.ErrInvalid):
		return invalid("name", "too_many", "a connection has at most %d secrets", vault.MaxPerConnection)
	}
	return err
}

// An AuditedVault records changes of the vault in the audit log, by name and never by value.
type AuditedVault struct {
	*vault.Vault
	log *audit.Log
}

// Set is vault.Vault.Set with an audit entry.
func (s *AuditedVault) Set(connection, name string, value []byte) error {
	return audited(s.log, audit.Event{Action: audit.SecretSet, Target: connection + "/" + name, Outcome: audit.Done},
		func() error { return s.Vault.Set(connection, name, value) })
}

// Remove is vault.Vault.Remove with an audit entry.
func (s *AuditedVault) Remove(connection, name string) error {
	return audited(s.log, audit.Event{Action: audit.SecretRemoved, Target: connection + "/" + name, Outcome: audit.Done},
		func() error { return s.Vault.Remove(connection, name) })
}

// Rotate is vault.Vault.Rotate with an audit entry.
func (s *AuditedVault) Rotate(to vault.Place) error {
	return audited(s.log, audit.Event{Action: audit.VaultRotated, Target: "vault", Outcome: audit.Done},
		func() error { return s.Vault.Rotate(to) })
}
