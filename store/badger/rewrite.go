package badger

import "context"
import "github.com/sluicehost/sluice/store/badger/bulk"

// segmentBytes is the size that a rewritten segment should have. A chunk of versions with tinySegments segments is
// worth rewriting.
const (
	segmentBytes = 256 << 10
	tinySegments = 64
)

// rewritable returns a chunk of versions whose segments are worth rewriting: half of their content is superseded, or
// they are many and small. Only versions that an index run covers and readers see qualify.
func (st *stream) rewritable() (chunk uint64, ok bool) {
	end := min(st.layout.Indexed, st.shown)
	for i := range st.heavy {
		if (i+1)<<chunkShift <= end {
			return i, true
		}
	}
	for i, n := range st.tiny {
		if (i+1)<<chunkShift > end {
			continue
		}
		if n >= tinySegments {
			return i, true
		}
		delete(st.tiny, i)
	}
	return 0, false
}

// A rewriteJob rewrites the segments that begin in one chunk of versions without the records that were superseded when
// it started. Nothing else modifies such old segments, so what it read is still valid when it writes. Every step
// replaces whole segments, so the job may stop after any of them.
type rewriteJob struct {
	c      *committer
	st     *stream
	number uint64
	chunk  uint64

	pack    bulk.Packer
	old     [][]byte       // keys of segments read
	fresh   []write        // their replacements, as payloads
	dropped map[uint64]int // purged versions by chunk
	bytes   int64
}

func (j *rewriteJob) run(ctx context.Context) error {
	r, err := j.c.s.snapshot(ctx, nil)
	if err != nil {
		return err
	}
	defer r.close()
	dead, err := newDeadView(r.reader, j.number)
	if err != nil {
		return damaged(err, j.st.name)
	}
	j.dropped = make(map[uint64]int)
	from, to := j.chunk<<chunkShift, (j.chunk+1)<<chunkShift
	err = r.scan(numbered(kindSegment, j.number), numbered(kindSegment, j.number, from), false,
		func(k, payload []byte) (bool, error) {
			if lastNumber(k) >= to {
				return false, nil
			}
			j.old = append(j.old, k)
			if err := j.read(payload, dead); err != nil || j.bytes+int64(j.pack.Bytes) < 2*segmentBytes {
				return true, err
			}
			return true, j.write(ctx)
		})
	if err == nil {
		err = j.write(ctx)
	}
	if err != nil {
		return damaged(err, j.st.name)
	}
	return j.finish(ctx)
}

// read copies the current entries of one segment.
func (j *rewriteJob) read(payload []byte, dead *deadView) error {
	for e, err := range bulk.Entries(payload) {
		if err != nil {
			return err
		}
		gone, err := dead.has(e.Version)
		if err != nil {
			return err
		}
		if gone {
			j.dropped[e.Version>>chunkShift]++
			continue
		}
		if j.pack.Add(e); j.pack.Bytes >= segmentBytes {
			j.close()
		}
	}
	return nil
}

func (j *rewriteJob) close() {
	first, v := j.pack.Segment()
	j.fresh = append(j.fresh, write{numbered(kindSegment, j.number, first), v})
	j.bytes += int64(len(v))
	j.pack = bulk.Packer{}
}

// write replaces the segments read so far if that saves anything.
func (j *rewriteJob) write(ctx context.Context) error {
	if len(j.pack.Parts) > 0 {
		j.close()
	}
	old, fresh, dropped := j.old, j.fresh, j.dropped
	bytes := j.bytes + int64(256*len(old))
	j.old, j.fresh, j.dropped, j.bytes = nil, nil, make(map[uint64]int), 0
	if len(dropped) == 0 && len(fresh) >= len(old) {
		return nil
	}
	return j.c.s.queue.doJob(ctx, bytes, func(g *group) error {
		if !j.c.current(j.st) {
			return errStale
		}
		for _, k := range old {
			if err := g.remove(k); err != nil {
				return err
			}
		}
		for _, w := range fresh {
			g.putPayload(w.key, w.value)
		}
		for chunk, n := range dropped {
			j.purge(g, chunk, n)
		}
		return nil
	})
}

// purge marks n more versions of a chunk as removed from disk.
func (j *rewriteJob) purge(g *group, chunk uint64, n int) {
	st := j.st
	was := st.dead[chunk]
	now := *was
	now.purged += n
	if chunk == 0 && now.purged == chunkVersions-1 {
		now.purged++ // there is no version 0
	}
	st.dead[chunk] = &now
	if now.purged == chunkVersions {
		st.dead[chunk] = gone
	}
	g.undo = append(g.undo, func() { st.dead[chunk] = was })
	// This also writes bits that so far are only in lists, which is harmless: those versions are superseded.
	g.put(numbered(kindDeadChunk, st.counters.number, chunk), now.encode())
	now.dirty = false
}

// finish unmarks the chunk.
func (j *rewriteJob) finish(ctx context.Context) error {
	return j.c.s.queue.do(ctx, false, func(*group) error {
		delete(j.st.heavy, j.chunk)
		delete(j.st.tiny, j.chunk)
		return nil
	})
}
