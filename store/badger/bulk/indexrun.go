package bulk

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"

	"github.com/sluicehost/sluice/store"
)

// An IndexRun is an immutable sorted set of rows on disk, divided into 2^bits pages by the
// top bits of h1. The page of a key is computed, not searched. Every page exists, so a
// missing one is damage.
type IndexRun struct {
	RunInfo
	Filter Filter // empty if it is not in memory
}

// A RunInfo is the metadata of an index run in the layout.
type RunInfo struct {
	ID      uint64 `json:"id"`
	Bits    uint   `json:"bits"`
	Rows    uint64 `json:"rows"`
	Blocks  int    `json:"blocks"`            // of its filter
	Removed uint64 `json:"removed,omitempty"` // pages deleted so far, of a run that is being removed
}

// pageRows is the maximum average number of rows in a page.
const pageRows = 256

func pageBits(rows uint64) uint {
	if rows <= pageRows {
		return 0
	}
	return uint(bits.Len64((rows - 1) / pageRows))
}

// Sound reports whether the numbers are plausible, so that none leads to an endless loop or
// an empty filter.
func (i RunInfo) Sound() bool {
	return i.Bits <= 32 && i.Blocks > 0 && i.Blocks <= 1<<28
}

func (i RunInfo) Pages() uint64 { return 1 << i.Bits }

// FilterBytes returns the memory that the run's filter takes.
func (i RunInfo) FilterBytes() int64 { return int64(i.Blocks) * blockBytes }

func (i RunInfo) PageOf(h1 uint64) uint64 {
	return h1 >> (64 - i.Bits) // a shift by 64 is 0
}

func Find(page []byte, h1, h2 uint64) (Row, bool) {
	n := len(page) / RowBytes
	at := sort.Search(n, func(j int) bool {
		g1 := binary.LittleEndian.Uint64(page[j*RowBytes:])
		return g1 > h1 || g1 == h1 && binary.LittleEndian.Uint64(page[j*RowBytes+8:]) >= h2
	})
	if at == n {
		return Row{}, false
	}
	r := decodeRow(page[at*RowBytes:])
	return r, r.H1 == h1 && r.H2 == h2
}

// CheckPage returns an error for a page of invalid length.
func (i RunInfo) CheckPage(n uint64, page []byte) error {
	if len(page)%RowBytes != 0 {
		return store.Corrupt("page %d of index run %d is cut", n, i.ID)
	}
	return nil
}

// A RunWriter divides ordered rows into pages and builds the filter.
type RunWriter struct {
	Info   RunInfo
	filter Filter
	page   uint64 // being filled
	rows   []byte
	emit   func(page uint64, rows []byte) error
}

// NewRunWriter returns a writer for at most rows rows. emit receives every finished page
// and owns it.
func NewRunWriter(id, rows uint64, emit func(page uint64, rows []byte) error) *RunWriter {
	f := newFilter(rows)
	return &RunWriter{filter: f, emit: emit, Info: RunInfo{ID: id, Bits: pageBits(rows), Blocks: len(f.blocks)}}
}

func (w *RunWriter) Add(r Row) error {
	for p := w.Info.PageOf(r.H1); w.page < p; {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if w.rows == nil {
		w.rows = make([]byte, 0, pageRows*RowBytes*5/4)
	}
	w.rows = r.encode(w.rows)
	w.filter.add(r.H1, r.H2)
	w.Info.Rows++
	return nil
}

func (w *RunWriter) flush() error {
	err := w.emit(w.page, w.rows)
	w.page, w.rows = w.page+1, nil
	return err
}

// Finish writes the remaining pages and returns the run.
func (w *RunWriter) Finish() (*IndexRun, error) {
	for w.page < w.Info.Pages() {
		if err := w.flush(); err != nil {
			return nil, err
		}
	}
	return &IndexRun{w.Info, w.filter}, nil
}

// LoadRun assembles the filter of a run from its parts. read returns a part, or nil if it
// is missing.
func LoadRun(info RunInfo, read func(part int) ([]byte, error)) (*IndexRun, error) {
	run := &IndexRun{RunInfo: info}
	for i := range FilterParts(info.Blocks) {
		payload, err := read(i)
		if err != nil {
			return nil, err
		}
		// Allocate what is on disk, not what the layout claims.
		run.Filter.blocks = append(run.Filter.blocks, make([]block, len(payload)/blockBytes)...)
		if payload == nil || !run.Filter.setPart(i, payload) {
			return nil, store.Corrupt("filter of index run %d is missing or cut", info.ID)
		}
	}
	if len(run.Filter.blocks) != info.Blocks {
		return nil, store.Corrupt("filter of index run %d is cut", info.ID)
	}
	return run, nil
}

// A RowCursor reads the rows of a run in order.
type RowCursor struct {
	info RunInfo
	read func(page uint64) ([]byte, error)
	next uint64 // page to read
	page []byte
	row  Row
	done bool
}

func NewRowCursor(info RunInfo, read func(page uint64) ([]byte, error)) (*RowCursor, error) {
	c := &RowCursor{info: info, read: read}
	return c, c.advance()
}

func (c *RowCursor) advance() (err error) {
	for len(c.page) == 0 {
		if c.next == c.info.Pages() {
			c.done = true
			return nil
		}
		if c.page, err = c.read(c.next); err != nil {
			return err
		}
		c.next++
	}
	c.row, c.page = decodeRow(c.page), c.page[RowBytes:]
	return nil
}

// MergeRows calls fn for the newest row of every key, in order.
func MergeRows(cursors []*RowCursor, fn func(Row) error) error {
	live := slices.DeleteFunc(slices.Clone(cursors), func(c *RowCursor) bool { return c.done })
	for len(live) > 0 {
		best, tied := live[0], false
		for _, c := range live[1:] {
			switch {
			case c.row.H1 < best.row.H1:
				best, tied = c, false
			case c.row.H1 == best.row.H1:
				tied = true
			}
		}
		newest := best.row
		if tied {
			newest = newestOf(live, best.row.H1)
		}
		if err := fn(newest); err != nil {
			return err
		}
		for i := len(live) - 1; i >= 0; i-- {
			c := live[i]
			if c != best && !tied || c.row.H1 != newest.H1 || c.row.H2 != newest.H2 {
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

// newestOf returns, of the rows with this h1, the one with the smallest h2, and of those
// the newest.
func newestOf(cursors []*RowCursor, h1 uint64) Row {
	var best Row
	for _, c := range cursors {
		r := c.row
		if r.H1 == h1 && (best.Version == 0 || r.H2 < best.H2 || r.H2 == best.H2 && r.At() > best.At()) {
			best = r
		}
	}
	return best
}
