package badger

import (
	"container/list"
	"context"
	"slices"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger/bulk"
)

// Pages and filters of index runs are stored under the number of the stream, the id of the run and their own number.

func pageKey(number, run, page uint64) []byte { return numbered(kindPage, number, run, page) }

func filterKey(number, run uint64, part int) []byte {
	return numbered(kindFilter, number, run, uint64(part))
}

// page reads one page of an index run.
func (r reader) page(number uint64, run bulk.RunInfo, n uint64) ([]byte, error) {
	page, ok, err := r.get(pageKey(number, run.ID, n))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, store.Corrupt("page %d of index run %d is missing", n, run.ID)
	}
	return page, run.CheckPage(n, page)
}

// find looks a key up in one index run.
func (r reader) find(number uint64, run bulk.RunInfo, h1, h2 uint64) (bulk.Row, bool, error) {
	page, err := r.page(number, run, run.PageOf(h1))
	if err != nil {
		return bulk.Row{}, false, err
	}
	found, ok := bulk.Find(page, h1, h2)
	return found, ok, nil
}

// loadRun reads the filter of a run.
func (r reader) loadRun(number uint64, info bulk.RunInfo) (*bulk.IndexRun, error) {
	return bulk.LoadRun(info, func(part int) ([]byte, error) {
		payload, _, err := r.get(filterKey(number, info.ID, part))
		return payload, err
	})
}

// rows returns a cursor over the rows of a run.
func (r reader) rows(number uint64, info bulk.RunInfo) (*bulk.RowCursor, error) {
	return bulk.NewRowCursor(info, func(n uint64) ([]byte, error) { return r.page(number, info, n) })
}

// A pageCache keeps the most recently read pages of index runs, up to limit bytes. Pages never change, and run ids are
// never reused.
type pageCache struct {
	limit int
	bytes int
	pages map[pageID]*list.Element
	order *list.List // of *cachedPage, most recently used first
}

type pageID struct{ number, run, page uint64 }

type cachedPage struct {
	id    pageID
	bytes []byte
}

func newPageCache(limit int) *pageCache {
	return &pageCache{limit: limit, pages: make(map[pageID]*list.Element), order: list.New()}
}

func (c *pageCache) get(id pageID) ([]byte, bool) {
	e, ok := c.pages[id]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cachedPage).bytes, true
}

func (c *pageCache) put(id pageID, b []byte) {
	c.pages[id] = c.order.PushFront(&cachedPage{id, b})
	for c.bytes += len(b); c.bytes > c.limit && c.order.Len() > 1; {
		last := c.order.Remove(c.order.Back()).(*cachedPage)
		delete(c.pages, last.id)
		c.bytes -= len(last.bytes)
	}
}

// mergeFan is how many index runs of one level are merged into one of the next.
const mergeFan = 8

// mergeLevel estimates from its size how often the rows of a run have been merged. base is the size in rows of an
// unmerged run.
func mergeLevel(i bulk.RunInfo, base int) int {
	l := 0
	for rows := i.Rows / uint64(base); rows >= mergeFan/2; rows /= mergeFan {
		l++
	}
	return l
}

// mergeable returns the runs to merge next, or none: all of them if most rows are superseded, otherwise the newest ones
// up to some level once there are mergeFan of them.
//
// Invariant: only runs adjacent in age are merged, so of two runs one is newer throughout, and the newest run that has
// a key has its current row.
func mergeable(st *stream, base int) []bulk.RunInfo {
	var all []bulk.RunInfo
	rows, top := uint64(0), 0
	for _, r := range st.runs {
		rows += r.Rows
		all = append(all, r.RunInfo)
		top = max(top, mergeLevel(r.RunInfo, base))
	}
	for l := range top + 1 {
		from := len(all)
		for from > 0 && mergeLevel(all[from-1], base) <= l {
			from--
		}
		if len(all)-from >= mergeFan {
			return all[from:]
		}
	}
	if len(all) > 1 && rows > 3*(st.counters.live+st.counters.tombstones)+uint64(mergeFan*base) {
		return all
	}
	return nil
}

// A mergeJob merges several runs into one. It reads from a snapshot and writes a few pages at a time through the
// committer. The last step swaps the runs.
type mergeJob struct {
	c      *committer
	st     *stream
	number uint64
	inputs []bulk.RunInfo

	out   bulk.RunInfo
	batch []write // payloads ready to be written
	bytes int64
}

// mergeStep is the number of bytes of pages written in one transaction.
const mergeStep = 384 << 10

func (j *mergeJob) run(ctx context.Context) error {
	rows := uint64(0)
	for _, in := range j.inputs {
		rows += in.Rows
	}
	if err := j.begin(ctx, rows); err != nil {
		return err
	}
	run, err := j.merge(ctx, rows)
	if err == nil {
		err = j.swap(ctx, run)
	}
	if err != nil {
		j.abandon(ctx)
	}
	return err
}

// begin records the run to be written, so that its pages are found and deleted if the process ends before swap.
func (j *mergeJob) begin(ctx context.Context, rows uint64) error {
	return j.c.s.queue.do(ctx, false, func(g *group) error {
		if !j.c.current(j.st) {
			return errStale
		}
		lay := j.st.layout.clone()
		j.out = bulk.NewRunWriter(lay.NextRun, rows, nil).Info
		lay.NextRun++
		lay.Building = &j.out
		return j.c.setLayout(g, j.st, lay)
	})
}

func (j *mergeJob) merge(ctx context.Context, rows uint64) (*bulk.IndexRun, error) {
	r, err := j.c.s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	var cursors []*bulk.RowCursor
	for _, in := range j.inputs {
		cur, err := r.rows(j.number, in)
		if err != nil {
			return nil, damaged(err, j.st.name)
		}
		cursors = append(cursors, cur)
	}
	put := func(k, v []byte) error {
		j.batch = append(j.batch, write{k, v})
		if j.bytes += int64(len(k) + len(v)); j.bytes < mergeStep {
			return nil
		}
		return j.write(ctx)
	}
	w := bulk.NewRunWriter(j.out.ID, rows, func(page uint64, rows []byte) error {
		return put(pageKey(j.number, j.out.ID, page), rows)
	})
	if err := bulk.MergeRows(cursors, w.Add); err != nil {
		return nil, damaged(err, j.st.name)
	}
	run, err := w.Finish()
	if err != nil {
		return nil, err
	}
	for part, payload := range run.Filter.Parts() {
		if err := put(filterKey(j.number, run.ID, part), payload); err != nil {
			return nil, err
		}
	}
	return run, j.write(ctx)
}

func (j *mergeJob) write(ctx context.Context) error {
	batch, bytes := j.batch, j.bytes
	j.batch, j.bytes = nil, 0
	return j.c.s.queue.doJob(ctx, bytes, func(g *group) error {
		if !j.c.current(j.st) {
			return errStale // it may have been erased
		}
		for _, w := range batch {
			g.putPayload(w.key, w.value)
		}
		return nil
	})
}

func (j *mergeJob) swap(ctx context.Context, run *bulk.IndexRun) error {
	st := j.st
	input := func(id uint64) bool {
		return slices.ContainsFunc(j.inputs, func(in bulk.RunInfo) bool { return in.ID == id })
	}
	return j.c.s.queue.do(ctx, false, func(g *group) error {
		if !j.c.current(st) {
			return errStale
		}
		lay := st.layout.clone()
		lay.Building = nil
		lay.Doomed = append(lay.Doomed, j.inputs...)
		at := slices.IndexFunc(lay.Runs, func(r bulk.RunInfo) bool { return input(r.ID) })
		lay.Runs = slices.Replace(lay.Runs, at, at+len(j.inputs), run.RunInfo)
		g.publish = append(g.publish, func() {
			at := slices.IndexFunc(st.runs, func(r *bulk.IndexRun) bool { return input(r.ID) })
			st.runs = slices.Replace(slices.Clone(st.runs), at, at+len(j.inputs), run)
		})
		return j.c.setLayout(g, st, lay)
	})
}

func (j *mergeJob) abandon(ctx context.Context) {
	_ = j.c.s.queue.do(ctx, false, func(g *group) error {
		if !j.c.current(j.st) || j.st.layout.Building == nil {
			return nil
		}
		lay := j.st.layout.clone()
		lay.Building, lay.Doomed = nil, append(lay.Doomed, j.out)
		return j.c.setLayout(g, j.st, lay)
	})
}
