package badger

import (
	"context"

	"github.com/sluicehost/sluice/store"
)

// gapBytes is how much of a commit's gaps goes into one transaction.
const gapBytes = 256 << 10

// Submit implements store.Store. A commit is one transaction. Only gaps, of
// which a terminal commit may close 50,000, can be too many for one: what is
// more than gapBytes of them goes ahead in transactions of its own, which is
// harmless, for a gap closes on the strength of records that are durable
// already (R99).
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
	items, last := splitGaps(c)
	it := &item{commit: last, settle: settle, bytes: commitBytes(last), barrier: c.End}
	if err := s.queue.push(ctx, append(items, it)...); err != nil {
		return nil, err
	}
	return receipt, nil
}

// splitGaps returns the items that go ahead of c, and what is left of c.
func splitGaps(c *store.Commit) ([]*item, *store.Commit) {
	var items []*item
	gaps, bytes, from := c.Gaps, int64(0), 0
	for i, g := range c.Gaps {
		if bytes += gapSize(g); bytes <= gapBytes {
			continue
		}
		ahead := &store.Commit{Lease: c.Lease, Grant: c.Grant, Gaps: c.Gaps[from : i+1]}
		items = append(items, &item{commit: ahead, settle: func(store.Ack, error) {}, bytes: bytes})
		bytes, from = 0, i+1
		gaps = c.Gaps[from:]
	}
	if len(items) == 0 {
		return nil, c
	}
	last := *c
	last.Gaps = gaps
	return items, &last
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
