package app

import (
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/vault"
)

// ErrNoAudit: a store in memory keeps no audit log.
var ErrNoAudit = errors.New("a memory: store keeps no audit log; name another with --store badger:DIR")

// OpenAudit opens the audit log beside a store. It opens no store and takes no
// lock of one.
func OpenAudit(store string) (*audit.Log, error) {
	dir, err := DataDir(store)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, ErrNoAudit
	}
	return audit.Open(dir)
}

// Audit writes events down (S137). For a store in memory it does nothing.
func (h *Host) Audit(events ...audit.Event) error {
	if h.DataDir == "" {
		return nil
	}
	l, err := audit.Open(h.DataDir)
	if err != nil {
		return err
	}
	return l.Append(events...)
}

// audited has an effect and writes it down; an effect that could not be written
// down is not had.
func (h *Host) audited(e audit.Event, effect func() error) error {
	if h.DataDir == "" {
		return effect()
	}
	l, err := audit.Open(h.DataDir)
	if err != nil {
		return err
	}
	return audited(l, e, effect)
}

func audited(l *audit.Log, e audit.Event, effect func() error) error {
	if err := l.Ready(); err != nil {
		return err
	}
	if err := effect(); err != nil {
		return err
	}
	if err := l.Append(e); err != nil {
		return fmt.Errorf("%s of %s was done, but not written down: %w", e.Action, e.Target, err)
	}
	return nil
}

// Secrets are a vault whose changes are in the audit log, by name and never by
// value.
type Secrets struct {
	*vault.Vault
	log *audit.Log
}

// Set is vault.Set.
func (s *Secrets) Set(connection, name string, value []byte) error {
	return audited(s.log, audit.Event{Action: audit.SecretSet, Target: connection + "/" + name, Outcome: audit.Done},
		func() error { return s.Vault.Set(connection, name, value) })
}

// Remove is vault.Remove.
func (s *Secrets) Remove(connection, name string) error {
	return audited(s.log, audit.Event{Action: audit.SecretRemoved, Target: connection + "/" + name, Outcome: audit.Done},
		func() error { return s.Vault.Remove(connection, name) })
}

// Rotate is vault.Rotate.
func (s *Secrets) Rotate(to vault.Place) error {
	return audited(s.log, audit.Event{Action: audit.VaultRotated, Target: "vault", Outcome: audit.Done}, func() error { return s.Vault.Rotate(to) })
}

// Requests is the request log beside the store, nil in memory.
func (h *Host) Requests() *audit.Requests { return h.requests }

// openLogs makes ready what the host itself writes down; nothing is on the disk
// before there is something to write.
func (h *Host) openLogs() error {
	if h.DataDir == "" {
		return nil
	}
	l, err := audit.Open(h.DataDir)
	if err != nil {
		return err
	}
	h.refusals, h.requests = audit.NewLimited(l), audit.OpenRequests(h.DataDir)
	return nil
}

func (h *Host) closeLogs() error {
	if h.requests == nil {
		return nil
	}
	return errors.Join(h.refusals.Close(), h.requests.Close())
}
