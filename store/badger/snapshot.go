package badger

import (
	"context"
	"sync"

	"github.com/sluicehost/sluice/store"
)

// A view pins one commit. It holds neither the engine nor its door between two
// pages, so whoever reads slowly holds up neither Close nor a store that runs
// out of space.
type view struct {
	s       *Store
	ts      uint64
	windows windows // those of the store may be newer
	once    sync.Once
}

// View implements store.Store.
func (s *Store) View(ctx context.Context) (store.View, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return &view{s: s, ts: s.repin(r.ts)}, nil
}

// Close implements store.View.
func (v *view) Close() {
	v.once.Do(func() { v.s.unpin(v.ts) })
}

// Records implements store.View. No call follows Close.
func (v *view) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	switch q.Order {
	case "", store.ByVersion:
	case store.ByKey, store.ByEmitted:
		return v.windows.page(ctx, q, v.snapshot)
	default:
		return store.RecordPage{}, errOrder
	}
	r, err := v.snapshot(ctx)
	if err != nil {
		return store.RecordPage{}, err
	}
	defer r.close()
	return r.byVersion(ctx, q)
}

func (v *view) snapshot(ctx context.Context) (*snapshot, error) {
	return v.s.snapshotOf(ctx, func() uint64 { return v.s.repin(v.ts) })
}
