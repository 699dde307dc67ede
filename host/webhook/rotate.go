package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/store"
)

// ErrRotations reports that too many secrets of the webhook are in use.
var ErrRotations = fmt.Errorf("the secret was replaced %d times in %s; wait until the oldest is over",
	maxReplaced, Overlap)

// A Rotation is the result of replacing a secret. Secret is "" if one was given.
type Rotation struct {
	WebhookID     string `json:"webhookId"`
	Secret        string `json:"secret,omitempty"`
	PreviousUntil string `json:"previousSecretUntil"`
	SecretOmitted bool   `json:"secretOmitted,omitempty"`
	SecretAt      string `json:"secretAt,omitempty"` // of another host that can still show it: address, or id
}

// Rotate replaces the secret of a webhook by the given one or, if that is "", a generated one, which no other method
// returns. Until PreviousUntil, deliveries are signed with both, the new one first. with is as in Create. Rotate may
// return *Refusal, ErrRotations, store.ErrNotFound or an error of Secrets.
func (h *Hooks) Rotate(ctx context.Context, id, given string, with func(Rotation) []store.Write) (Rotation, error) {
	made := ""
	if given == "" {
		made = newSecret()
	}
	secret := cmp.Or(given, made)
	if _, err := keyOf(secret); err != nil {
		return Rotation{}, err
	}
	h.create.Lock()
	defer h.create.Unlock()
	s, old, err := h.signing(ctx, id)
	if err != nil {
		return Rotation{}, err
	}
	now := h.o.now().UTC().Truncate(time.Millisecond)
	next, ok := old.rotated([]byte(secret), now)
	if !ok {
		return Rotation{}, ErrRotations
	}
	r := Rotation{WebhookID: s.ID, Secret: made, PreviousUntil: store.Time(next.until(now))}
	if err := h.o.Secrets.Set(id, next.encode()); err != nil {
		return Rotation{}, err
	}
	// The rotation takes effect with the document: see signing.Rotations.
	if err := h.rotated(ctx, id, next, with, r); err != nil {
		return Rotation{}, errors.Join(err, h.o.Secrets.Set(id, old.encode()))
	}
	keys, err := next.keys()
	if err != nil {
		return Rotation{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.serves[id]; f != nil {
		f.keys.Store(&keys)
	}
	return r, nil
}

// rotated records in the document that there is a new secret.
func (h *Hooks) rotated(ctx context.Context, id string, next signing,
	with func(Rotation) []store.Write, r Rotation) error {
	var writes []store.Write
	if with != nil {
		writes = with(r)
	}
	return change(ctx, h.o.Store, id,
		func(s *stored) { s.Rotations, s.PreviousUntil = next.Rotations, next.until(h.o.now()) }, writes...)
}

// signing reads the secrets of a webhook.
func (h *Hooks) signing(ctx context.Context, id string) (*stored, signing, error) {
	d, err := h.o.Store.Document(ctx, store.Webhooks, id)
	if err != nil {
		return nil, signing{}, err
	}
	s, err := read(d)
	if err != nil {
		return nil, signing{}, err
	}
	kept, err := h.o.Secrets.Get(id)
	if err != nil {
		return nil, signing{}, err
	}
	k, err := decodeSigning(kept, s.Rotations)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		err = fmt.Errorf("the secret of webhook %s is damaged", id)
	}
	return s, k, err
}
