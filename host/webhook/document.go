package webhook

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sluicehost/sluice/store"
)

func (h *Hooks) all(ctx context.Context) ([]*stored, error) {
	docs, err := h.o.Store.Documents(ctx, store.DocumentQuery{Kind: store.Webhooks, Limit: 1000})
	if err != nil {
		return nil, err
	}
	var out []*stored
	for _, d := range docs {
		s, err := read(d)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// change rewrites the document of a webhook, with other writes in the same commit. It returns store.ErrNotFound if
// there is none.
func change(ctx context.Context, st store.Documents, id string, edit func(*stored), with ...store.Write) error {
	for {
		d, err := st.Document(ctx, store.Webhooks, id)
		if err != nil {
			return err
		}
		s, err := read(d)
		if err != nil {
			return err
		}
		edit(s)
		data, err := json.Marshal(s) // #nosec G117 -- the document is where it is kept
		if err != nil {
			return err
		}
		err = st.Write(ctx, append([]store.Write{{Kind: store.Webhooks, ID: id, Data: data,
			If: &d.Revision}}, with...)...)
		if conflict := (*store.ConflictError)(nil); !errors.As(err, &conflict) || conflict.Kind != store.Webhooks {
			return err
		}
	}
}

// forget deletes all cursors of a webhook.
func forget(ctx context.Context, st store.Documents, id string) error {
	for {
		docs, err := st.Documents(ctx, store.DocumentQuery{Kind: store.Deliveries, Prefix: id, Limit: maxWrites})
		if err != nil || len(docs) == 0 {
			return err
		}
		var writes []store.Write
		for _, d := range docs {
			writes = append(writes, store.Write{Kind: store.Deliveries, ID: d.ID})
		}
		if err := st.Write(ctx, writes...); err != nil {
			return err
		}
	}
}
