package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sluicehost/sluice/store"
)

// Create adds a webhook, for events from now on. secret is the one that was made,
// "" when it was given; nothing returns it again. with, unless nil, is called
// with both, and what it returns is written in the same commit. It neither blocks
// nor uses the store. *Refusal, ErrTooMany, or what Secrets says.
func (h *Hooks) Create(ctx context.Context, by string, d Definition, with func(w Webhook, secret string) []store.Write) (w Webhook, secret string, err error) {
	s, made, err := h.accept(ctx, by, d)
	if err != nil {
		return Webhook{}, "", err
	}
	key := []byte(cmp.Or(d.Secret, made))
	h.create.Lock()
	defer h.create.Unlock()
	all, err := h.all(ctx)
	if err != nil {
		return Webhook{}, "", err
	}
	if len(all) >= MaxWebhooks {
		return Webhook{}, "", ErrTooMany
	}
	w = s.shown()
	if err := h.put(ctx, s, key, func() []store.Write {
		if with == nil {
			return nil
		}
		return with(w, made)
	}); err != nil {
		return Webhook{}, "", err
	}
	if err := h.serve(ctx, s, signing{Current: key}); err != nil && !errors.Is(err, store.ErrClosed) {
		return Webhook{}, "", err
	}
	h.wakeScan()
	return w, made, nil
}

// put stores a webhook whose secret is stored already. A secret whose webhook is
// not is erased here, or when this process ends first by the next Open.
func (h *Hooks) put(ctx context.Context, s *stored, secret []byte, with func() []store.Write) error {
	data, err := json.Marshal(s) // #nosec G117 -- the member is empty
	if err != nil {
		return err
	}
	if err := h.o.Secrets.Set(s.ID, secret); err != nil {
		return err
	}
	writes := append([]store.Write{{Kind: store.Webhooks, ID: s.ID, Data: data, If: store.Absent()}}, with()...)
	if err := h.o.Store.Write(ctx, writes...); err != nil {
		return errors.Join(err, h.o.Secrets.Remove(s.ID))
	}
	return nil
}

// accept checks a definition.
func (h *Hooks) accept(ctx context.Context, by string, d Definition) (s *stored, made string, err error) {
	if err := filterOf(d.Events); err != nil {
		return nil, "", err
	}
	if err := tagsOf(d.Tags); err != nil {
		return nil, "", err
	}
	if d.Secret == "" {
		made = newSecret()
	}
	if _, err := keyOf(cmp.Or(d.Secret, made)); err != nil {
		return nil, "", err
	}
	if err := h.gate.accept(ctx, d.URL); err != nil {
		return nil, "", err
	}
	return &stored{
		ID: "whk_" + ulid.Make().String(), URL: d.URL, Events: slices.Clone(d.Events), Tags: slices.Clone(d.Tags),
		CreatedAt: time.Now().UTC().Truncate(time.Millisecond), CreatedBy: by,
	}, made, nil
}

// List returns all webhooks, oldest first.
func (h *Hooks) List(ctx context.Context) ([]Webhook, error) {
	all, err := h.all(ctx)
	out := make([]Webhook, 0, len(all))
	for _, s := range all {
		out = append(out, s.shown())
	}
	return out, err
}

// Get returns one; store.ErrNotFound.
func (h *Hooks) Get(ctx context.Context, id string) (Webhook, error) {
	d, err := h.o.Store.Document(ctx, store.Webhooks, id)
	if err != nil {
		return Webhook{}, err
	}
	s, err := read(d)
	if err != nil {
		return Webhook{}, err
	}
	return s.shown(), nil
}

// Delete ends a webhook and erases its secret; store.ErrNotFound. An attempt that
// is under way is cut. with is written in the same commit.
func (h *Hooks) Delete(ctx context.Context, id string, with ...store.Write) error {
	d, err := h.o.Store.Document(ctx, store.Webhooks, id)
	if err != nil {
		return err
	}
	for {
		gone := store.Write{Kind: store.Webhooks, ID: id, If: &d.Revision}
		err := h.o.Store.Write(ctx, append([]store.Write{gone}, with...)...)
		if conflict := (*store.ConflictError)(nil); errors.As(err, &conflict) && conflict.Kind == store.Webhooks {
			if d, err = h.o.Store.Document(ctx, store.Webhooks, id); err != nil {
				return err // store.ErrNotFound: somebody else deleted it
			}
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	h.mu.Lock()
	f := h.serves[id]
	delete(h.serves, id)
	h.mu.Unlock()
	if f != nil {
		f.stop()
	}
	if err := h.o.Secrets.Remove(id); err != nil {
		return err
	}
	return forget(context.WithoutCancel(ctx), h.o.Store, id)
}
