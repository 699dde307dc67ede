package badger

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// maintain runs after every batch. It queues short work as a chore of the committer and starts long work as a job in a
// goroutine of its own.
func (c *committer) maintain(g *group, st *stream) error {
	if !st.flushing && (st.mem.Used >= c.s.opts.memRows || st.fresh >= memBytes) {
		st.flushing = true
		c.chores = append(c.chores, &item{
			op:     func(g *group) error { return c.flush(g, st) },
			bytes:  int64(st.mem.Used)*(bulk.RowBytes+4) + 64<<10,
			settle: func(store.Ack, error) { st.flushing = false },
		})
	}
	if len(st.lists) >= listsMax || st.listed >= listsMaxDead || st.dirty >= dirtyMax {
		if err := c.checkpointDead(g, st); err != nil {
			return err
		}
	}
	if n := st.mem.Memory(); n != st.measured {
		st.measured = n
		st.footprint.Store(st.memory())
	}
	c.startJob(st)
	return nil
}

// flush makes an index run of the rows in memory.
func (c *committer) flush(g *group, st *stream) error {
	if c.streams[streamKey{st.connection, st.name}] != st || st.mem.Used == 0 {
		return nil
	}
	rows := st.mem.Rows()
	lay := st.layout.clone()
	w := bulk.NewRunWriter(lay.NextRun, uint64(len(rows)), func(page uint64, rows []byte) error {
		g.putPayload(pageKey(st.counters.number, lay.NextRun, page), rows)
		return nil
	})
	for _, r := range rows {
		if err := w.Add(r); err != nil {
			return err
		}
	}
	run, err := w.Finish()
	if err != nil {
		return err
	}
	for part, payload := range run.Filter.Parts() {
		g.putPayload(filterKey(st.counters.number, run.ID, part), payload)
	}
	lay.NextRun++
	lay.Indexed = st.counters.last
	lay.Runs = append(lay.Runs, run.RunInfo)
	if err := c.setLayout(g, st, lay); err != nil {
		return err
	}
	old, frozen, fresh := st.mem, st.frozen, st.fresh
	empty := bulk.NewTable()
	if old.Used >= c.s.opts.memRows/2 {
		empty = old.Emptied()
	}
	c.s.visible.change(func() { st.mem, st.frozen = empty, append(slices.Clone(frozen), old) })
	st.fresh = 0
	g.undo = append(g.undo, func() {
		c.s.visible.change(func() { st.mem, st.frozen = old, frozen })
		st.fresh = fresh
	})
	g.publish = append(g.publish, func() {
		st.frozen = slices.DeleteFunc(slices.Clone(st.frozen), func(t *bulk.Table) bool { return t == old })
		st.runs = append(slices.Clone(st.runs), run)
		st.footprint.Store(st.memory())
	})
	return nil
}

func (c *committer) setLayout(g *group, st *stream, lay layout) error {
	old := st.layout
	if err := lay.put(g, st.counters.number); err != nil {
		return err
	}
	st.layout, st.used = lay, g.seq
	g.undo = append(g.undo, func() { st.layout = old })
	return nil
}

// checkpointDead writes the changed chunks and deletes the lists.
func (c *committer) checkpointDead(g *group, st *stream) error {
	for _, n := range st.lists {
		if err := g.remove(numbered(kindDeadList, st.counters.number, n)); err != nil {
			return err
		}
	}
	var written []*deadChunk
	for i, ch := range st.dead {
		if !ch.dirty {
			continue
		}
		g.put(numbered(kindDeadChunk, st.counters.number, i), ch.encode())
		ch.dirty = false
		written = append(written, ch)
	}
	lists, listed, dirty := st.lists, st.listed, st.dirty
	st.lists, st.listed, st.dirty = nil, 0, 0
	g.undo = append(g.undo, func() {
		for _, ch := range written {
			ch.dirty = true
		}
		st.lists, st.listed, st.dirty = lists, listed, dirty
	})
	return nil
}

// startJob starts the most urgent job of a stream or, if st is nil, of the bulk files, unless a job is running.
func (c *committer) startJob(st *stream) {
	if c.job || c.broken != nil {
		return
	}
	work := c.pick(st)
	if work == nil {
		return
	}
	c.job = true
	s, name := c.s, store.Stream("")
	if st != nil {
		name = st.name
	}
	s.jobs.Go(func() {
		err := work(context.Background())
		if err != nil && !errors.Is(err, store.ErrClosed) && !errors.Is(err, errStale) && s.stopped() == nil {
			s.opts.Logger.Warn("maintenance failed", "stream", name, "err", err)
		}
		_ = s.queue.do(context.Background(), false, func(*group) error {
			c.job = false
			if err == nil {
				for _, other := range c.streams {
					c.startJob(other)
				}
			}
			return nil
		})
	})
}

func (c *committer) pick(st *stream) func(context.Context) error {
	if n, ok := c.tail.Wasteful(); ok {
		j := compactJob{c: c, file: n, end: c.tail.Files[n].End}
		return j.run
	}
	if st == nil {
		return nil
	}
	if len(st.layout.Doomed) > 0 {
		doomed := st.layout.Doomed[0]
		return func(ctx context.Context) error { return c.dropRun(ctx, st, doomed) }
	}
	if inputs := mergeable(st, c.s.opts.memRows); len(inputs) > 0 {
		j := mergeJob{c: c, st: st, number: st.counters.number, inputs: inputs}
		return j.run
	}
	if chunk, ok := st.rewritable(); ok {
		j := rewriteJob{c: c, st: st, number: st.counters.number, chunk: chunk}
		return j.run
	}
	return nil
}

// current reports whether st is still the state of its stream.
func (c *committer) current(st *stream) bool {
	return c.streams[streamKey{st.connection, st.name}] == st
}

var errStale = errors.New("stream left memory")

// dropRun deletes the pages of a run no longer in use, some at a time, and then its filter.
func (c *committer) dropRun(ctx context.Context, st *stream, run bulk.RunInfo) error {
	const some = 1000
	for removed := run.Removed; ; {
		last := false
		err := c.s.queue.doJob(ctx, some*200, func(g *group) error {
			if !c.current(st) || len(st.layout.Doomed) == 0 || st.layout.Doomed[0].ID != run.ID {
				return errStale
			}
			to := min(removed+some, run.Pages())
			for p := removed; p < to; p++ {
				if err := g.remove(pageKey(st.counters.number, run.ID, p)); err != nil {
					return err
				}
			}
			lay := st.layout.clone()
			lay.Doomed[0].Removed = to
			if last = to == run.Pages(); last {
				for i := range bulk.FilterParts(run.Blocks) {
					if err := g.remove(filterKey(st.counters.number, run.ID, i)); err != nil {
						return err
					}
				}
				lay.Doomed = lay.Doomed[1:]
			}
			removed = to
			return c.setLayout(g, st, lay)
		})
		if err != nil || last {
			return err
		}
	}
}
