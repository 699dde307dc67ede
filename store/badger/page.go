package badger

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"
)

// An index run is a sorted set of rows on disk, cut into 2^bits pages by the
// top bits of h1. The page of a key is computed, not searched, and every page
// exists, so one that is missing is damage. Runs are immutable.
type indexRun struct {
	runInfo
	filter filter
}

// A runInfo is what the layout keeps of an index run.
type runInfo struct {
	ID      uint64 `json:"id"`
	Bits    uint   `json:"bits"`
	Rows    uint64 `json:"rows"`
	Blocks  int    `json:"blocks"`            // of its filter
	Removed uint64 `json:"removed,omitempty"` // pages deleted so far, of a run on its way out
}

// pageRows is how many rows a page holds on average, at most.
const pageRows = 256

func pageBits(rows uint64) uint {
	if rows <= pageRows {
		return 0
	}
	return uint(bits.Len64((rows - 1) / pageRows))
}

// sound says that a run can be: no number in it makes a loop without end, or a
// filter without a block.
func (i runInfo) sound() bool {
	return i.Bits <= 32 && i.Blocks > 0 && i.Blocks <= 1<<28
}

func (i runInfo) pages() uint64 { return 1 << i.Bits }

func (i runInfo) pageOf(h1 uint64) uint64 {
	return h1 >> (64 - i.Bits) // a shift by 64 is 0
}

func pageKey(number, run, page uint64) []byte { return numbered(kindPage, number, run, page) }

// find looks a key up in one page.
func (i runInfo) find(r reader, number, h1, h2 uint64) (row, bool, error) {
	page, err := i.page(r, number, h1)
	if err != nil {
		return row{}, false, err
	}
	found, ok := findInPage(page, h1, h2)
	return found, ok, nil
}

// page reads the page for a hash.
func (i runInfo) page(r reader, number, h1 uint64) ([]byte, error) {
	page, ok, err := r.get(pageKey(number, i.ID, i.pageOf(h1)))
	if err != nil {
		return nil, err
	}
	if !ok || len(page)%rowBytes != 0 {
		return nil, damagef("page %d of index run %d is missing or cut", i.pageOf(h1), i.ID)
	}
	return page, nil
}

func findInPage(page []byte, h1, h2 uint64) (row, bool) {
	n := len(page) / rowBytes
	at := sort.Search(n, func(j int) bool {
		g1 := binary.LittleEndian.Uint64(page[j*rowBytes:])
		return g1 > h1 || g1 == h1 && binary.LittleEndian.Uint64(page[j*rowBytes+8:]) >= h2
	})
	if at == n {
		return row{}, false
	}
	r := decodeRow(page[at*rowBytes:])
	return r, r.h1 == h1 && r.h2 == h2
}

// A runWriter cuts rows, which come in order, into pages and builds the filter.
type runWriter struct {
	number uint64
	info   runInfo
	filter filter
	page   uint64 // being filled
	value  []byte
	emit   func(k, v []byte) error
}

// newRunWriter expects at most rows rows; emit takes every finished page.
func newRunWriter(number, id, rows uint64, emit func(k, v []byte) error) *runWriter {
	f := newFilter(rows)
	return &runWriter{
		number: number, filter: f, emit: emit,
		info:  runInfo{ID: id, Bits: pageBits(rows), Blocks: len(f.blocks)},
		value: newValue(pageRows * rowBytes * 5 / 4),
	}
}

func (w *runWriter) add(r row) error {
	for p := w.info.pageOf(r.h1); w.page < p; {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.value = r.encode(w.value)
	w.filter.add(r.h1, r.h2)
	w.info.Rows++
	return nil
}

func (w *runWriter) flush() error {
	err := w.emit(pageKey(w.number, w.info.ID, w.page), w.value)
	w.page++
	w.value = newValue(pageRows * rowBytes * 5 / 4)
	return err
}

// finish writes the pages that are left, and the filter.
func (w *runWriter) finish() error {
	for w.page < w.info.pages() {
		if err := w.flush(); err != nil {
			return err
		}
	}
	for i := range filterParts(w.info.Blocks) {
		k := numbered(kindFilter, w.number, w.info.ID, uint64(i))
		if err := w.emit(k, w.filter.part(i)); err != nil {
			return err
		}
	}
	return nil
}

// loadRun reads the filter of a run.
func loadRun(r reader, number uint64, info runInfo) (*indexRun, error) {
	run := &indexRun{runInfo: info}
	for i := range filterParts(info.Blocks) {
		payload, ok, err := r.get(numbered(kindFilter, number, info.ID, uint64(i)))
		if err != nil {
			return nil, err
		}
		if ok { // so much memory as there is on disk, whatever the layout says
			run.filter.blocks = append(run.filter.blocks, make([]block, len(payload)/blockBytes)...)
		}
		if !ok || !run.filter.setPart(i, payload) {
			return nil, damagef("filter of index run %d is missing or cut", info.ID)
		}
	}
	if len(run.filter.blocks) != info.Blocks {
		return nil, damagef("filter of index run %d is cut", info.ID)
	}
	return run, nil
}

// A rowCursor reads the rows of a run in order.
type rowCursor struct {
	r      reader
	number uint64
	info   runInfo
	next   uint64 // page to read
	page   []byte
	row    row
	done   bool
}

func newRowCursor(r reader, number uint64, info runInfo) (*rowCursor, error) {
	c := &rowCursor{r: r, number: number, info: info}
	return c, c.advance()
}

func (c *rowCursor) advance() error {
	for len(c.page) == 0 {
		if c.next == c.info.pages() {
			c.done = true
			return nil
		}
		page, ok, err := c.r.get(pageKey(c.number, c.info.ID, c.next))
		if err != nil {
			return err
		}
		if !ok || len(page)%rowBytes != 0 {
			return damagef("page %d of index run %d is missing or cut", c.next, c.info.ID)
		}
		c.page = page
		c.next++
	}
	c.row, c.page = decodeRow(c.page), c.page[rowBytes:]
	return nil
}

// mergeRows calls fn for the newest row of every key in the cursors, in order.
func mergeRows(cursors []*rowCursor, fn func(row) error) error {
	live := slices.DeleteFunc(slices.Clone(cursors), func(c *rowCursor) bool { return c.done })
	for len(live) > 0 {
		best, tied := live[0], false
		for _, c := range live[1:] {
			switch {
			case c.row.h1 < best.row.h1:
				best, tied = c, false
			case c.row.h1 == best.row.h1:
				tied = true
			}
		}
		newest := best.row
		if tied {
			newest = newestOf(live, best.row.h1)
		}
		if err := fn(newest); err != nil {
			return err
		}
		for i := len(live) - 1; i >= 0; i-- {
			c := live[i]
			if c != best && !tied || c.row.h1 != newest.h1 || c.row.h2 != newest.h2 {
				continue
			}
			if err := c.advance(); err != nil {
				return err
			}
			if c.done {
				live = slices.Delete(live, i, i+1)
			}
		}
	}
	return nil
}

// newestOf picks, of the rows with this h1, the least h2 and there the newest.
func newestOf(cursors []*rowCursor, h1 uint64) row {
	var best row
	for _, c := range cursors {
		r := c.row
		if r.h1 == h1 && (best.version == 0 || r.h2 < best.h2 || r.h2 == best.h2 && r.at() > best.at()) {
			best = r
		}
	}
	return best
}
