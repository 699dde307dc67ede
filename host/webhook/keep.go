package webhook

import (
	"context"
)

// Secrets keep what deliveries are signed with, by webhook and outside the store
// (S86). All methods may be called concurrently.
type Secrets interface {
	Set(id string, secret []byte) error
	Get(id string) ([]byte, error)
	Remove(id string) error // nil also when there is none
	IDs() ([]string, error)
}

// hide moves a secret out of the document that an earlier version kept it in.
// What the store's files still hold of it goes with their next compaction.
func (h *Hooks) hide(ctx context.Context, s *stored) error {
	if s.Secret == "" {
		return nil
	}
	if err := h.o.Secrets.Set(s.ID, []byte(s.Secret)); err != nil {
		return err
	}
	s.Secret = ""
	return change(ctx, h.o.Store, s.ID, func(s *stored) { s.Secret = "" })
}

// sweepSecrets erases those of webhooks that there are not: of a Create or a
// Delete that was cut short.
func (h *Hooks) sweepSecrets(all []*stored) error {
	ids, err := h.o.Secrets.IDs()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, s := range all {
		known[s.ID] = true
	}
	for _, id := range ids {
		if !known[id] {
			if err := h.o.Secrets.Remove(id); err != nil {
				return err
			}
		}
	}
	return nil
}
