package badger

import (
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// A candidate is one change of a batch that is being ingested.
type candidate struct {
	change store.Change
	raw    []byte // its packed form
	h1, h2 uint64
	old    bulk.Row // the row of the key in the index
	had    bool
	same   bool // equal to what is stored; old is then not set
}

// ingest applies one batch to g. It completes all reads before it changes the stream's memory, which g.undo restores.
func (c *committer) ingest(g *group, lease store.Lease, b *store.Batch, held *fileRefs,
	now time.Time) (changed, unchanged int, err error) {
	st, err := c.stream(g, lease.ConnectionID, b.Stream)
	if err != nil {
		return 0, 0, err
	}
	cands := c.candidates(st, b)
	if err := c.resolve(st, cands); err != nil {
		return 0, 0, damaged(err, st.name)
	}
	changed = c.place(g, st, lease.RunID, b, cands, now)
	if err := held.batch(st, b, c.keep); err != nil {
		return 0, 0, damaged(err, st.name)
	}
	g.records += b.Len()
	return changed, b.Len() - changed, c.maintain(g, st)
}

// candidates returns the changes of a batch with their keys hashed.
func (c *committer) candidates(st *stream, b *store.Batch) []candidate {
	cands, packed := c.cands[:0], b.Packed()
	for off, change := range b.Changes() {
		n := off + len(change.Key) + len(change.Data) + store.ChangeHeader
		k := candidate{change: change, raw: packed[off:n]}
		k.h1, k.h2 = bulk.HashKey(change.Key)
		cands = append(cands, k)
	}
	c.cands = cands
	return cands
}

// resolve finds the old rows of keys that are not in mem.
func (c *committer) resolve(st *stream, cands []candidate) error {
	probes := c.probes[:0]
	for i := range cands {
		k := &cands[i]
		if _, ok := st.mem.Get(k.h1, k.h2); ok {
			continue
		}
		if k.old, k.had = st.frozenRow(k.h1, k.h2); k.had {
			continue
		}
		if err := st.sequence.next(c, st, k); err != nil {
			return err
		}
		if !k.had {
			probes = append(probes, bulk.Probe{H1: k.h1, H2: k.h2, At: i})
		}
	}
	c.probes = probes
	for j, run := range st.runs[:min(len(st.runs), 64)] {
		c.filterSum += run.Filter.Ask(probes, j)
	}
	for i := range probes {
		if err := c.lookup(st, &cands[probes[i].At], probes[i].Runs); err != nil {
			return err
		}
	}
	return nil
}

// frozenRow looks a key up in the tables being made into runs.
func (st *stream) frozenRow(h1, h2 uint64) (bulk.Row, bool) {
	for i := len(st.frozen) - 1; i >= 0; i-- {
		if r, ok := st.frozen[i].Get(h1, h2); ok {
			return r, true
		}
	}
	return bulk.Row{}, false
}

// lookup reads the pages that may hold the key, newest run first, unless an earlier key of the batch has meanwhile
// found where the sequence continues.
func (c *committer) lookup(st *stream, k *candidate, runs uint64) error {
	if runs == 0 && len(st.runs) <= 64 {
		return nil
	}
	if err := st.sequence.next(c, st, k); err != nil || k.had {
		return err
	}
	for j := len(st.runs) - 1; j >= 0; j-- {
		if j < 64 && runs&(1<<j) == 0 || j >= 64 && !st.runs[j].Filter.Has(k.h1, k.h2) {
			continue
		}
		page, err := c.page(st.counters.number, st.runs[j].RunInfo, k.h1)
		if err != nil {
			return err
		}
		if k.old, k.had = bulk.Find(page, k.h1, k.h2); k.had {
			return st.sequence.observe(c, st, k.old)
		}
	}
	return nil
}

// page returns the page of a run that covers a hash.
func (c *committer) page(number uint64, i bulk.RunInfo, h1 uint64) ([]byte, error) {
	id := pageID{number, i.ID, i.PageOf(h1)}
	if b, ok := c.pages.get(id); ok {
		return b, nil
	}
	b, err := c.base.page(number, i, id.page)
	if err == nil {
		c.pages.put(id, b)
	}
	return b, err
}

// A replacement is a row put into memory and the row that it replaced there.
type replacement struct {
	row, old bulk.Row
	had      bool
}

// place assigns versions to the changes that are real, writes their segment, and updates the counters, the memory and
// the set of superseded versions.
func (c *committer) place(g *group, st *stream, run store.RunID, b *store.Batch, cands []candidate, now time.Time) int {
	before, fresh := st.counters, st.fresh
	p := bulk.Part{Run: string(run), Ingested: now.UnixMicro(), First: st.counters.last + 1}
	var dead []uint64
	done := make([]replacement, 0, len(cands))
	keep := c.keep[:0]
	mem := st.mem
	st.rows.Lock()
	for i := range cands {
		k := &cands[i]
		old, had := mem.Get(k.h1, k.h2)
		if !had && k.same {
			continue
		}
		if !had {
			old, had = k.old, k.had
		}
		if !c.isChange(k.change, old, had) {
			continue
		}
		r := st.count(c.hash, k, old, had)
		if had {
			dead = append(dead, old.At())
		}
		prev, inMem := mem.Put(r)
		done = append(done, replacement{r, prev, inMem})
		keep = append(keep, i)
	}
	st.rows.Unlock()
	c.keep = keep
	if len(keep) == 0 {
		return 0
	}
	for _, v := range dead {
		st.supersede(v)
	}
	g.undo = append(g.undo, func() {
		st.rows.Lock()
		for _, r := range slices.Backward(done) {
			mem.Unput(r.row, r.old, r.had)
		}
		st.rows.Unlock()
		for _, v := range dead {
			st.dead.unset(v)
		}
		st.counters, st.fresh = before, fresh
	})
	last := st.counters.last
	g.publish = append(g.publish, func() { st.shown = last })
	p.Count, p.Packed = len(keep), b.Packed()
	if len(keep) < len(cands) {
		p.Packed = c.packed[:0]
		for _, i := range keep {
			p.Packed = append(p.Packed, cands[i].raw...)
		}
		c.packed = p.Packed
	}
	c.writeSegment(g, st, p)
	c.writeDead(g, st, dead)
	st.counters.updated = now.UnixMicro()
	st.counters.put(g, st.countersKey)
	return len(keep)
}

// supersede records that a version is no longer current.
func (st *stream) supersede(v uint64) {
	i := v >> chunkShift
	if ch := st.dead[i]; ch == nil || !ch.dirty {
		st.dirty++
	}
	if st.dead.set(v).heavy() {
		st.heavy[i] = true
	}
}

func (c *committer) writeSegment(g *group, st *stream, p bulk.Part) {
	g.putExtent(numbered(kindSegment, st.counters.number, p.First), bulk.PartHeader+len(p.Run)+len(p.Packed), p.Append)
	st.fresh += int64(len(p.Packed))
	st.tiny[p.First>>chunkShift]++
}

// isChange reports whether a change differs from what is stored.
func (c *committer) isChange(ch store.Change, old bulk.Row, had bool) bool {
	if ch.Op == store.Delete {
		return had && !old.Deleted()
	}
	if !had || old.Deleted() {
		return true
	}
	e1, e2 := c.hash.Element(old.At(), ch)
	return e1 != old.E1 || e2 != old.E2
}

// count gives the change the next version and updates the counters.
func (st *stream) count(e *bulk.Hasher, k *candidate, old bulk.Row, had bool) bulk.Row {
	n := &st.counters
	n.last++
	r := bulk.Row{H1: k.h1, H2: k.h2, Version: n.last}
	r.E1, r.E2 = e.Element(n.last, k.change)
	if had {
		n.sum.sub(old.E1, old.E2)
		if old.Deleted() {
			n.tombstones--
		} else {
			n.live--
		}
	}
	n.sum.add(r.E1, r.E2)
	if k.change.Op == store.Delete {
		r.Version |= bulk.Tombstone
		n.tombstones++
	} else {
		n.live++
	}
	n.bytes += uint64(len(k.change.Key) + len(k.change.Data))
	return r
}

// writeDead writes the versions that a commit superseded as a list.
func (c *committer) writeDead(g *group, st *stream, dead []uint64) {
	if len(dead) == 0 {
		return
	}
	lists, listed := len(st.lists), st.listed
	g.undo = append(g.undo, func() { st.lists, st.listed = st.lists[:lists], listed })
	g.store(numbered(kindDeadList, st.counters.number, st.counters.last), encodeDeadList(dead))
	st.lists = append(st.lists, st.counters.last)
	st.listed += len(dead)
}
