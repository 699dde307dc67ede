package destination

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluicehost/sluice/store"
)

// marks stores the marks of one destination in the store of the host, by the id of its definition, so another
// destination by the same name starts without marks.
type marks struct {
	store store.Documents
	of    string
}

// A kept is a stored mark.
type kept struct {
	ID   StreamID        `json:"id"`
	Data json.RawMessage `json:"data"`
}

func (m marks) prefix() string { return m.of + "/" }

// Marks implements Marks.
func (m marks) Marks(ctx context.Context) (map[StreamID][]byte, error) {
	out := map[StreamID][]byte{}
	err := m.each(ctx, func(d store.Document) error {
		var k kept
		if err := json.Unmarshal(d.Data, &k); err != nil {
			return fmt.Errorf("read mark %s: %w", d.ID, err)
		}
		out[k.ID] = k.Data
		return nil
	})
	return out, err
}

// Mark implements Marks.
func (m marks) Mark(ctx context.Context, id StreamID, data []byte) error {
	w := store.Write{Kind: store.Delivered, ID: m.prefix() + id.String()}
	if data != nil {
		var err error
		if w.Data, err = json.Marshal(kept{id, data}); err != nil {
			return err
		}
	}
	return m.store.Write(ctx, w)
}

// forget deletes all marks.
func (m marks) forget(ctx context.Context) error {
	return m.each(ctx, func(d store.Document) error {
		return m.store.Write(ctx, store.Write{Kind: store.Delivered, ID: d.ID})
	})
}

func (m marks) each(ctx context.Context, do func(store.Document) error) error {
	for after := ""; ; {
		docs, err := m.store.Documents(ctx,
			store.DocumentQuery{Kind: store.Delivered, Prefix: m.prefix(), After: after, Limit: 1000})
		if err != nil || len(docs) == 0 {
			return err
		}
		for _, d := range docs {
			if err := do(d); err != nil {
				return err
			}
		}
		after = docs[len(docs)-1].ID
	}
}
