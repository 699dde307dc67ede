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

// Create adds a webhook for events from now on. secret is the generated one, or "" if one was given; no other method
// returns it. Unless with is nil, it is called with both, and the writes that it returns are part of the same commit.
// It must neither block nor use the store. Create may return *Refusal, ErrTooMany or an error of Secrets.
func (h *Hooks) Create(ctx context.Context, by string, d Definition,
	with func(w Webhook, secret string) []store.Write) (w Webhook, secret string, err error) {
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
	w = s.shown(h.o.now())
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

// put stores the secret of a webhook and then the webhook. If the latter fails, it erases the secret, which the next
// load does if this process ends before.
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

// accept validates a definition.
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
		CreatedAt: h.o.now().UTC().Truncate(time.Millisecond), CreatedBy: by,
	}, made, nil
}

// List returns all webhooks, oldest first.
func (h *Hooks) List(ctx context.Context) ([]Webhook, error) {
	all, err := h.all(ctx)
	out := make([]Webhook, 0, len(all))
	for _, s := range all {
		out = append(out, s.shown(h.o.now()))
	}
	return out, err
}

// Get returns a webhook, or store.ErrNotFound.
func (h *Hooks) Get(ctx context.Context, id string) (Webhook, error) {
	d, err := h.o.Store.Document(ctx, store.Webhooks, id)
	if err != nil {
		return Webhook{}, err
	}
	s, err := read(d)
	if err != nil {
		return Webhook{}, err
	}
	return s.shown(h.o.now()), nil
}

// Delete deletes a webhook and erases its secret. It returns store.ErrNotFound if there is none. An attempt in progress
// is aborted. with is part of the same commit.
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
				return err // store.ErrNotFound if it was deleted concurrently
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
	if err := h.o.Secrets.Remove(id); err != nil { // the next load of a host that can removes it
		h.o.Log.Warn("webhook: secret not erased", "webhook", id, "error", err)
	}
	return forget(context.WithoutCancel(ctx), h.o.Store, id)
}
