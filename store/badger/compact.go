package badger

import (
	"bytes"
	"context"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// Bulk files shrink in two ways: one that nothing refers to is deleted, and
// one that is mostly garbage has what is left of it written again.

// A compactJob moves the live extents of one file to the end of the newest.
type compactJob struct {
	c    *committer
	file uint32
	end  uint64

	moves []move
	bytes int64
}

type move struct {
	key, raw, payload []byte // raw is the sealed place it was read from
}

func (j *compactJob) run(ctx context.Context) error {
	r, err := j.c.s.snapshot(ctx, nil)
	if err != nil {
		return err
	}
	defer r.close()
	err = j.c.s.bulk.Extents(j.file, j.end, func(k []byte, offset uint64, length uint32) error {
		raw, err := r.raw(k)
		if err != nil || raw == nil {
			return err
		}
		form, ref, err := unseal(k, raw)
		if err != nil {
			return store.Corrupt("key %.40q: %v", k, err)
		}
		p, ok := bulk.DecodePlace(ref)
		if form != formExtent || !ok || p.File != j.file || p.Offset != offset {
			return nil
		}
		payload, err := j.c.s.bulk.Read(k, p)
		if err != nil {
			return err
		}
		j.moves = append(j.moves, move{k, raw, payload})
		if j.bytes += p.Size(k); j.bytes < mergeStep {
			return nil
		}
		return j.write(ctx)
	})
	if err != nil {
		return err
	}
	return j.write(ctx)
}

func (j *compactJob) write(ctx context.Context) error {
	moves, n := j.moves, j.bytes
	j.moves, j.bytes = nil, 0
	return j.c.s.doJob(ctx, n, func(g *group) error {
		for _, m := range moves {
			raw, pending := g.pending(m.key)
			if !pending {
				var err error
				if raw, err = g.c.base.raw(m.key); err != nil {
					return err
				}
			}
			if !bytes.Equal(raw, m.raw) {
				continue // replaced or deleted meanwhile
			}
			if err := g.remove(m.key); err != nil {
				return err
			}
			g.putPayload(m.key, m.payload)
		}
		return nil
	})
}

// reap deletes files that became empty, once no reader can want them: first
// what the engine knows of them, then the files.
func (c *committer) reap() {
	for n, f := range c.tail.Files {
		if n == c.tail.File || f.Live != 0 || c.reaping[n] != 0 {
			continue
		}
		c.reaping[n] = c.next // nothing from this group on refers to it
	}
	oldest := c.s.oldestReader()
	for n, seq := range c.reaping {
		if seq == reapQueued || oldest < seq || len(c.inflight) > 0 {
			continue
		}
		c.reaping[n] = reapQueued
		c.chores = append(c.chores, &item{
			op: func(g *group) error {
				if c.tail.Files[n].Live != 0 {
					return errStale // a failed group gave it something back
				}
				g.setFile(n, bulk.File{})
				g.set(numbered(kindFile, uint64(n)), nil)
				delete(c.tail.Files, n)
				return nil
			},
			bytes: 1024,
			settle: func(_ store.Ack, err error) {
				delete(c.reaping, n)
				if err != nil {
					return
				}
				if err := c.s.bulk.Remove(n); err != nil {
					c.s.opts.Logger.Warn("remove bulk file", "err", err)
				}
			},
		})
	}
}

// reapQueued marks a file whose deletion is queued.
const reapQueued = ^uint64(0)

// oldestReader is the commit of the oldest snapshot, or the newest commit.
func (s *Store) oldestReader() uint64 {
	s.view.RLock()
	defer s.view.RUnlock()
	oldest := s.published
	for ts := range s.readers {
		oldest = min(oldest, ts)
	}
	return oldest
}
