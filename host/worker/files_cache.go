package worker

import (
	"slices"

	"github.com/sluicehost/sluice/abi"
)

// A readCache caches parts of one open file and decides how much to fetch. Sequential reads
// double the length of each fetch, up to a chunk. Other reads fetch aligned blocks, of
// which the last few are kept, for readers that go to and fro in a file.
type readCache struct {
	fetchedAt timestamp
	window    extent           // of a sequential reader
	blocks    [cacheSet]extent // of other reads, replaced in turn
	nextBlock int
	next      int64 // end of the last fetch
	ahead     int   // length of the last sequential fetch
	end       int64 // size of the file, if hasEnd
	hasEnd    bool
}

// cacheSet is the number of blocks; with the window they take at most 1.5 MiB per file.
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

// copy copies cached bytes from off on and returns their number.
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

// ended reports whether the file is known to end at or before off.
func (c *readCache) ended(off int64) bool { return c.hasEnd && off >= c.end }

// plan returns what to fetch for a read of want bytes at off. A fetch that begins at off
// and is no longer than want bypasses the cache.
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

// store caches fetched data. short says that the file ends there.
func (c *readCache) store(start int64, data []byte, short bool) {
	slot := &c.window
	if c.ahead == 0 {
		slot = &c.blocks[c.nextBlock]
		c.nextBlock = (c.nextBlock + 1) % cacheSet
	}
	slot.off = start
	slot.data = append(slices.Grow(slot.data[:0], len(data)), data...)
	c.recordFetch(start, len(data), short)
}

// recordFetch records a fetch that was not cached.
func (c *readCache) recordFetch(start int64, n int, short bool) {
	c.next = start + int64(n)
	if short {
		c.end, c.hasEnd = c.next, true
	}
}

// forget drops data that may be stale, and keeps buffers and the length of the next fetch.
func (c *readCache) forget(now timestamp) {
	c.window.data = c.window.data[:0]
	for i := range c.blocks {
		c.blocks[i].data = c.blocks[i].data[:0]
	}
	c.hasEnd = false
	c.fetchedAt = now
}
