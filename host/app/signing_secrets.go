package app

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/vault"
)

// webhookPrefix begins the names of signing secrets: the ids of webhooks.
const webhookPrefix = "whk_"

// SigningSecrets are what webhooks are signed with, by the webhook's id: in the vault, beside
// the secrets of connections, or in memory beside a store that is there too. All methods may
// be called concurrently.
type SigningSecrets struct {
	*directory

	mu sync.Mutex // guards what follows
	in map[string][]byte
}

// SigningSecrets returns those of this host.
func (ss *secretStore) SigningSecrets() *SigningSecrets {
	return &SigningSecrets{directory: ss.directory, in: map[string][]byte{}}
}

// Set keeps a secret. It returns when that is on the device.
func (s *SigningSecrets) Set(id string, secret []byte) error {
	return s.either(func() error {
		s.in[id] = append([]byte(nil), secret...)
		return nil
	}, func(v vault.Keeper) error { return v.Set(vault.Host, id, secret) })
}

// Get returns a copy that is the caller's. The error wraps vault.ErrNotFound,
// vault.ErrKey or vault.ErrDamaged.
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

// Remove erases a secret, nil also when there is none.
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

// beingMade is for how long another host may be about to add the webhook of a secret, whatever
// the clocks say.
const beingMade = time.Hour

// IDs returns the webhooks that a secret is kept of, without those that another host may be adding.
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
	return disk(v)
}
