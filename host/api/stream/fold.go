package stream

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// maxFolds bounds the folded logs that are kept, so that reading a run again reads only what is
// new.
const maxFolds = 256

// folds keeps the most recently used folds.
type folds struct {
	mu   sync.Mutex // guards runs and used
	runs map[store.RunID]*folded
	used uint64
}

// A folded log is read up to some event.
type folded struct {
	used uint64 // guarded by folds.mu

	// token is a mutex that supports giving up with a context. It is held across reads of the
	// store, so that a log is read once and the others get the result.
	token chan struct{}
	fold  timeline.Fold
}

// of returns the fold of a run, evicting the least recently used one.
func (c *folds) of(id store.RunID) *folded {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.runs[id]
	if f == nil {
		if c.runs == nil {
			c.runs = map[store.RunID]*folded{}
		}
		if len(c.runs) >= maxFolds {
			c.forget()
		}
		f = &folded{token: make(chan struct{}, 1)}
		c.runs[id] = f
	}
	c.used++
	f.used = c.used
	return f
}

func (c *folds) forget() {
	var oldest store.RunID
	for id, f := range c.runs {
		if o := c.runs[oldest]; o == nil || f.used < o.used {
			oldest = id
		}
	}
	delete(c.runs, oldest)
}

func (f *folded) lock(ctx context.Context) error {
	select {
	case f.token <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *folded) unlock() { <-f.token }

// catchUp reads to the end of the log, which is the end of a commit: pages may split a commit, but
// a short page does not.
func (f *folded) catchUp(ctx context.Context, log Log, id store.RunID) error {
	p := pager{}
	for !f.fold.Ended() {
		limit := p.plan()
		events, err := log.Events(ctx, id, f.fold.Next(), limit)
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		bytes := 0
		for _, e := range events {
			bytes += len(e.Data)
		}
		f.fold.Add(events...)
		if len(events) < limit {
			return nil
		}
		p.learn(len(events), bytes)
	}
	return nil
}

// Fold calls use with a run's record and its log folded up to now. The fold is shared: use must
// only read it, not retain it and not block. It returns store.ErrNotFound if there is no such run.
// A run whose log was deleted has an empty fold.
func (h *Hub) Fold(ctx context.Context, id store.RunID, use func(store.Run, *timeline.Fold)) error {
	row, err := h.log.Run(ctx, id)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if row.Pruned {
		use(row, &timeline.Fold{})
		return nil
	}
	f := h.folds.of(id)
	if err := f.lock(ctx); err != nil {
		return err
	}
	defer f.unlock()
	if err := f.catchUp(ctx, h.log, id); err != nil {
		return err
	}
	use(row, &f.fold)
	return nil
}

// Snapshot returns the RunSnapshot of a run without tokens, or store.ErrNotFound.
func (h *Hub) Snapshot(ctx context.Context, id store.RunID) (timeline.Snapshot, error) {
	var s timeline.Snapshot
	row, err := h.log.Run(ctx, id)
	if err != nil {
		return s, fmt.Errorf("run: %w", err)
	}
	a, err := h.about(ctx, row)
	if err != nil {
		return s, err
	}
	err = h.Fold(ctx, id, func(r store.Run, f *timeline.Fold) { s = f.Snapshot(r, a) })
	return s, err
}

// Brief returns the snapshot of a run for a list. For a finished run it does not read the log.
func (h *Hub) Brief(ctx context.Context, row store.Run) (timeline.Snapshot, error) {
	if !timeline.RowStatus(row).Terminal() {
		s, err := h.Snapshot(ctx, row.ID)
		return s.WithoutStates(), err
	}
	a, err := h.about(ctx, row)
	if err != nil {
		return timeline.Snapshot{}, err
	}
	head, err := h.log.RunHead(ctx, row.ID)
	if err != nil {
		return timeline.Snapshot{}, fmt.Errorf("run: %w", err)
	}
	return timeline.SnapshotOfRow(row, a, head.Next).WithoutStates(), nil
}

// about returns what the host adds to a snapshot, including the floor of a deleted log.
func (h *Hub) about(ctx context.Context, row store.Run) (timeline.About, error) {
	a := h.opts.About(ctx, row)
	if row.Pruned {
		head, err := h.log.RunHead(ctx, row.ID)
		if err != nil {
			return a, fmt.Errorf("run: %w", err)
		}
		a.RetentionFloor = head.Next
	}
	return a, nil
}
