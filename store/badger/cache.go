package badger

import "container/list"

// A pageCache keeps the pages of index runs that were read last, up to a number
// of bytes. Pages never change, and run ids are never used again.
type pageCache struct {
	limit int
	bytes int
	pages map[pageID]*list.Element
	order *list.List // of *cachedPage, last used first
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
