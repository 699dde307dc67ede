package badger

// evict keeps the memory of streams below a bound: the streams used longest ago
// go, until the rest fits. The stream used last stays however large it is. What
// goes is read again when it is needed: filters, and the records that no index
// run covers.
func (c *committer) evict() {
	total := int64(0)
	for _, st := range c.streams {
		total += st.footprint.Load()
	}
	for total > c.s.opts.streamMemory() && len(c.streams) > 1 {
		var oldest *stream
		for _, st := range c.streams {
			if oldest == nil || st.used < oldest.used {
				oldest = st
			}
		}
		if oldest.used > c.base.ts || oldest.flushing {
			return // in flight
		}
		total -= oldest.footprint.Load()
		c.forget(streamKey{oldest.connection, oldest.name})
	}
}
