package app

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/vault"
)

// webhookPrefix is the prefix of the ids of webhooks, which name their signing secrets.
const webhookPrefix = "whk_"

// SigningSecrets are the secrets that sign webhooks, by the webhook's id: in the vault, beside the secrets of
// connections, or in memory for a store in memory. All methods may be called concurrently.
type SigningSecrets struct {
	*directory

	mu sync.Mutex // guards what follows
	in map[string][]byte
}

// SigningSecrets returns the signing secrets of this host.
func (ss *secretStore) SigningSecrets() *SigningSecrets {
	return &SigningSecrets{directory: ss.directory, in: map[string][]byte{}}
}

// Set stores a secret durably.
func (s *SigningSecrets) Set(id string, secret []byte) error {
	return s.either(func() error {
		s.in[id] = append([]byte(nil), secret...)
		return nil
	}, func(v vault.Keeper) error { return v.Set(vault.Host, id, secret) })
}

// Get returns a copy of a secret, which the caller owns. The error wraps vault.ErrNotFound, vault.ErrKey or
// vault.ErrDamaged.
func (s *SigningSecrets) Get(id string) (secret []byte, err error) {
	err = s.either(func() error {
		kept, ok := s.in[id]
		if !ok {
			return vault.ErrNotFound
		}
		secret = append(secret, kept...)
		return nil
	}, func(v vault.Keeper) error {
		kept, err := v.Get(vault.Host, id)
		if err != nil {
			return err
		}
		defer kept.Wipe()
		kept.Use(func(b []byte) { secret = append(secret, b...) })
		return nil
	})
	return secret, err
}

// Remove erases a secret. It is no error if there is none.
func (s *SigningSecrets) Remove(id string) error {
	err := s.either(func() error {
		delete(s.in, id)
		return nil
	}, func(v vault.Keeper) error { return v.Remove(vault.Host, id) })
	if errors.Is(err, vault.ErrNotFound) {
		return nil
	}
	return err
}

// beingMade is how long another host may take between storing a secret and adding its webhook, with a margin for
// clocks that differ.
const beingMade = time.Hour

// IDs returns the webhooks with a stored secret, except for those that another host may be adding.
func (s *SigningSecrets) IDs() (ids []string, err error) {
	err = s.either(func() error {
		for id := range s.in {
			ids = append(ids, id)
		}
		return nil
	}, func(v vault.Keeper) error {
		all, err := v.List()
		for _, e := range all {
			if s.shared != nil && time.Since(e.Set) < beingMade {
				continue
			}
			if e.Connection == vault.Host && strings.HasPrefix(e.Name, webhookPrefix) {
				ids = append(ids, e.Name)
			}
		}
		return err
	})
	return ids, err
}

func (s *SigningSecrets) either(memory func() error, disk func(vault.Keeper) error) error {
	if s.DataDir == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		return memory()
	}
	v, err := s.vault()
	if err != nil {
		return err
	}
	if err = disk(v); closed(err) {
		return host.Refuse("unavailable", "%v", err)
	}
	return err
}
