package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/sluicehost/sluice/store"
)

// TestType is the type of what Test delivers. No event has it.
const TestType = "webhook.test"

// Deliveries returns the stored attempts of a webhook, newest first, or store.ErrNotFound.
func (h *Hooks) Deliveries(ctx context.Context, id string) ([]Attempt, error) {
	d, err := h.o.Store.Document(ctx, store.Webhooks, id)
	if err != nil {
		return nil, err
	}
	s, err := read(d)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.Attempts, func(a, b Attempt) int { return strings.Compare(b.ID, a.ID) }) // some are concurrent
	return append([]Attempt{}, s.Attempts...), nil
}

// Test delivers a signed message that says that it is a test, and returns the attempt. It also works for a disabled
// webhook, which stays disabled. Failures are not counted. It may return store.ErrNotFound.
func (h *Hooks) Test(ctx context.Context, id string) (Attempt, error) {
	now := h.o.now()
	b, err := json.Marshal(struct {
		Type      string `json:"type"`
		Timestamp string `json:"timestamp"`
		Data      any    `json:"data"`
	}{TestType, store.Time(now), map[string]string{"webhookId": id}})
	if err != nil {
		return Attempt{}, err
	}
	return h.once(ctx, id, Attempt{MessageID: "msg_" + ulid.Make().String(), Cause: ForTest, Type: TestType,
		Number: 1}, b)
}

// Redeliver makes another attempt for the same event under the same message id, regardless of the order of the run. It
// returns store.ErrNotFound if the attempt or the event is no longer stored.
func (h *Hooks) Redeliver(ctx context.Context, id, delivery string) (Attempt, error) {
	all, err := h.Deliveries(ctx, id)
	if err != nil {
		return Attempt{}, err
	}
	i := slices.IndexFunc(all, func(a Attempt) bool { return a.ID == delivery })
	if i < 0 {
		return Attempt{}, store.ErrNotFound
	}
	a := all[i]
	if a.Sequence == nil {
		return h.Test(ctx, id)
	}
	events, err := h.o.Store.Events(ctx, a.RunID, *a.Sequence, 1)
	if err != nil {
		return Attempt{}, err
	}
	if len(events) == 0 || events[0].ID != a.EventID {
		return Attempt{}, store.ErrNotFound
	}
	b, err := eventBody(events[0])
	if err != nil {
		return Attempt{}, err
	}
	return h.once(ctx, id, attemptFor(id, ForRedelivery, events[0], 1), b)
}

// once makes and stores one attempt on request.
func (h *Hooks) once(ctx context.Context, id string, a Attempt, body []byte) (Attempt, error) {
	s, k, err := h.signing(ctx, id)
	if err != nil {
		return Attempt{}, err
	}
	keys, err := k.keys()
	if err != nil {
		return Attempt{}, err
	}
	select {
	case h.room <- struct{}{}:
		defer func() { <-h.room }()
	case <-ctx.Done():
		return Attempt{}, ctx.Err()
	}
	a, err = (&sender{s.URL, keys, h.post, h.o.now}).send(ctx, a, body)
	if err != nil && ctx.Err() != nil {
		return Attempt{}, ctx.Err() // the outcome is unknown
	}
	if errors.Is(err, store.ErrSilent) {
		return Attempt{}, err
	}
	if err := note(ctx, h.o.Store, id, a); err != nil && !errors.Is(err, store.ErrNotFound) {
		return Attempt{}, err
	}
	return a, nil
}
