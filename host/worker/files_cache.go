package worker

import (
	"slices"

	"github.com/sluicehost/sluice/abi"
)

// A readCache holds parts of one open file and decides how much to fetch next. Reading on
// from where the last fetch ended doubles the next one, up to a chunk; jumping about fetches
// aligned blocks, of which the last few stay, so that a reader going to and fro in a
// packfile finds them again.
type readCache struct {
	learnt moment
	window extent           // of a sequential reader
	blocks [cacheSet]extent // of the others, replaced in turn
	turn   int
	next   int64 // where the last fetch ended
	ahead  int   // length of the last sequential fetch
	end    int64 // where the file ends, if hasEnd
	hasEnd bool
}

// cacheSet blocks and one window are at most 1.5 MiB a file.
const cacheSet = 8

// An extent is a run of bytes of a file.
type extent struct {
	off  int64
	data []byte
}

func (e extent) at(off int64) []byte {
	if off < e.off || off >= e.off+int64(len(e.data)) {
		return nil
	}
	return e.data[off-e.off:]
}

// copy copies what it has from off on, 0 if nothing.
func (c *readCache) copy(buf []byte, off int64) int {
	if b := c.window.at(off); b != nil {
		return copy(buf, b)
	}
	for i := range c.blocks {
		if b := c.blocks[i].at(off); b != nil {
			return copy(buf, b)
		}
	}
	return 0
}

// ended reports whether the file is known to have nothing at off.
func (c *readCache) ended(off int64) bool { return c.hasEnd && off >= c.end }

// plan says what to fetch for a reader of want bytes at off. A fetch that
// starts at off and is no longer than want needs no cache.
func (c *readCache) plan(off int64, want int) (start int64, length int) {
	if off != c.next {
		c.ahead = 0
		if want < abi.FileBlock {
			return off &^ (abi.FileBlock - 1), abi.FileBlock
		}
	}
	c.ahead = min(max(c.ahead*2, abi.FileBlock), abi.MaxFileChunk)
	return off, min(max(want, c.ahead), abi.MaxFileChunk)
}

// put stores what a fetch brought. short says that the file ended there.
func (c *readCache) put(start int64, data []byte, short bool) {
	slot := &c.window
	if c.ahead == 0 {
		slot = &c.blocks[c.turn]
		c.turn = (c.turn + 1) % cacheSet
	}
	slot.off = start
	slot.data = append(slices.Grow(slot.data[:0], len(data)), data...)
	c.passed(start, len(data), short)
}

// passed notes a fetch that was not stored.
func (c *readCache) passed(start int64, n int, short bool) {
	c.next = start + int64(n)
	if short {
		c.end, c.hasEnd = c.next, true
	}
}

// forget drops what may not be true any more, and keeps memory and rhythm.
func (c *readCache) forget(now moment) {
	c.window.data = c.window.data[:0]
	for i := range c.blocks {
		c.blocks[i].data = c.blocks[i].data[:0]
	}
	c.hasEnd = false
	c.learnt = now
}
