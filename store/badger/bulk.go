package badger

import (
	"bytes"
	"context"
	"fmt"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// Size in bytes at which the next bulk file is started.
const (
	bulkRoll       = 128 << 20
	bulkRollMemory = 4 << 20
)

// putExtent writes a value of about n bytes, which fill appends, to the bulk file and stores its place under k.
func (g *group) putExtent(k []byte, n int, fill func([]byte) []byte) {
	at := g.extentBuffer(bulk.ExtentHeader + len(k) + n)
	was := len(at.Bytes)
	p := at.Add(k, fill)
	chunks := len(g.bulk)
	g.undo = append(g.undo, func() {
		g.bulk = g.bulk[:chunks]
		g.bulk[chunks-1].Bytes = g.bulk[chunks-1].Bytes[:was]
	})
	ref := append(make([]byte, 0, 1+bulk.PlaceBytes+sealBytes), formExtent)
	g.set(k, seal(k, p.Append(ref)))
	g.inBulk += p.Size(k)
	f := g.c.tail.Files[p.File]
	f.Live += p.Size(k)
	f.End = p.Offset + uint64(p.Size(k))
	g.setFile(p.File, f)
}

// putPayload is like putExtent for a payload that exists already.
func (g *group) putPayload(k, payload []byte) {
	g.putExtent(k, len(payload), func(b []byte) []byte { return append(b, payload...) })
}

// extentInFlight reads a value that this group or one on its way to disk wrote to a bulk file.
func (g *group) extentInFlight(k, payload []byte) ([]byte, bool, error) {
	p, ok := bulk.DecodePlace(payload)
	if !ok {
		return nil, false, store.Corrupt("key %.40q in flight: bad place", k)
	}
	for _, other := range append([]*group{g}, g.c.inflight...) {
		for i := range other.bulk {
			if payload, ok := other.bulk[i].Payload(k, p); ok {
				return payload, true, nil
			}
		}
	}
	return nil, false, store.Corrupt("key %.40q in flight: not in any group", k)
}

// extentBuffer returns the chunk at the end of the current bulk file. A new one has room for n bytes.
func (g *group) extentBuffer(n int) *bulk.Chunk {
	t := &g.c.tail
	if t.Files[t.File].End >= g.c.s.opts.bulkRoll {
		old := t.File
		t.File++
		g.undo = append(g.undo, func() { t.File = old })
	}
	if i := len(g.bulk) - 1; i >= 0 && g.bulk[i].File == t.File {
		return &g.bulk[i]
	}
	g.bulk = append(g.bulk, bulk.Chunk{File: t.File, Offset: t.Files[t.File].End, Bytes: g.c.buffer(n)})
	return &g.bulk[len(g.bulk)-1]
}

// dropExtent counts an extent as garbage.
func (g *group) dropExtent(k, payload []byte) error {
	p, ok := bulk.DecodePlace(payload)
	if !ok {
		return store.Corrupt("key %.40q: bad place", k)
	}
	f := g.c.tail.Files[p.File]
	f.Live -= p.Size(k)
	g.setFile(p.File, f)
	return nil
}

func (g *group) setFile(n uint32, f bulk.File) {
	files := g.c.tail.Files
	old, known := files[n]
	files[n] = f
	g.undo = append(g.undo, func() {
		if files[n] = old; !known {
			delete(files, n)
		}
	})
	k := numbered(kindFile, uint64(n))
	g.put(k, f.Append(newValue(bulk.FileBytes)))
}

// bufferBytes is the capacity up to which buffers of bulk are reused. It is also the size at which a group is full.
const bufferBytes = 4 << 20

func (c *committer) buffer(n int) []byte {
	if k := len(c.buffers); k > 0 {
		b := c.buffers[k-1]
		c.buffers = c.buffers[:k-1]
		return b[:0]
	}
	return make([]byte, 0, max(n, 1<<20))
}

func (c *committer) recycle(g *group) {
	for _, ch := range g.bulk {
		if len(c.buffers) <= groupInflight && cap(ch.Bytes) <= bufferBytes {
			c.buffers = append(c.buffers, ch.Bytes)
		}
	}
	g.bulk = nil
}

// loadBulk reads the accounting of the bulk files and compares it with the directory. A file that is missing or too
// short is damage.
func (s *disk) loadBulk(r reader) (bulk.Tail, error) {
	t := bulk.Tail{File: 1, Files: make(map[uint32]bulk.File)}
	if s.dir == "" {
		return t, nil
	}
	err := r.scan([]byte{kindFile}, nil, false, func(k, payload []byte) (bool, error) {
		f, ok := bulk.DecodeFile(payload)
		if !ok {
			return false, store.Corrupt("bulk file entry has %d bytes", len(payload))
		}
		n := uint32(lastNumber(k))
		t.Files[n] = f
		t.File = max(t.File, n)
		return true, nil
	})
	if err != nil {
		return t, err
	}
	for n, f := range t.Files {
		whole, err := s.bulk.Holds(n, f.End)
		if err != nil {
			return t, err
		}
		if f.End > 0 && !whole {
			return t, store.Corrupt("bulk file %d is missing or shorter than %d bytes", n, f.End)
		}
	}
	return t, nil
}

// dropOrphans removes bulk files that no transaction refers to, which are left by commits that failed.
func (s *disk) dropOrphans(t bulk.Tail) error {
	if s.dir == "" {
		return nil
	}
	files, err := s.bulk.List()
	if err != nil {
		return err
	}
	for _, n := range files {
		if _, known := t.Files[n]; !known {
			if err := s.bulk.Remove(n); err != nil {
				return fmt.Errorf("remove bulk file: %w", err)
			}
		}
	}
	return nil
}

// Bulk files shrink in two ways: a file without references is deleted, and one that is mostly garbage has its live
// extents rewritten elsewhere.

// A compactJob moves the live extents of one file to the end of the newest file.
type compactJob struct {
	c    *committer
	file uint32
	end  uint64

	moves []move
	bytes int64
}

type move struct {
	key, raw, payload []byte // raw is the sealed place from which payload was read
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
	return j.c.s.queue.doJob(ctx, n, func(g *group) error {
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

// reap deletes empty files once no reader can need them: first the engine's entry, then the file.
func (c *committer) reap() {
	for n, f := range c.tail.Files {
		if n == c.tail.File || f.Live != 0 || c.reaping[n] != 0 {
			continue
		}
		c.reaping[n] = c.next // groups from this one on do not refer to it
	}
	oldest := c.s.visible.oldest()
	for n, seq := range c.reaping {
		if seq == reapQueued || oldest < seq || len(c.inflight) > 0 {
			continue
		}
		c.reaping[n] = reapQueued
		c.chores = append(c.chores, &item{
			op: func(g *group) error {
				if c.tail.Files[n].Live != 0 {
					return errStale // the undo of a failed group made an extent live again
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
