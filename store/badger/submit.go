package badger

import (
	"context"

	"github.com/sluicehost/sluice/store"
)

// Submit implements store.Store. A commit is one transaction.
func (s *Store) Submit(ctx context.Context, c *store.Commit) (*store.Receipt, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	if len(c.Batches) > 0 {
		if err := s.space.awaitIngest(ctx); err != nil {
			return nil, err
		}
	}
	receipt, settle := store.NewReceipt()
	it := &item{commit: c, settle: settle, bytes: commitBytes(c), barrier: c.End}
	if err := s.queue.push(ctx, it); err != nil {
		return nil, err
	}
	return receipt, nil
}

func gapSize(g store.DetailGap) int64 {
	return int64(len(g.Locator)+len(g.ListCursor)+2*len(g.RecordKey)) + 1024
}

// commitBytes estimates what c costs in the engine.
func commitBytes(c *store.Commit) int64 {
	n := int64(1024)
	for _, b := range c.Batches {
		n += int64(b.Size()) + 256
	}
	for _, e := range c.Events {
		n += int64(len(e.Data)) + 1024
	}
	for _, states := range [][]store.State{c.Staged, c.Advance} {
		for _, st := range states {
			n += int64(len(st.Cursor)) + 512
		}
	}
	for _, g := range c.Gaps {
		n += gapSize(g)
	}
	if c.Ask != nil {
		n += int64(len(c.Ask.Message)+len(c.Ask.Schema)) + 512
	}
	if c.Run != nil {
		n += int64(len(c.Run.Result)) + 1024
	}
	return n
}
