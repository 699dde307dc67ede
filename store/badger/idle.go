package badger

import (
	"context"

	"github.com/sluicehost/sluice/store/badger/bulk"
)

// idleStreams holds the indexes of streams that readers look up keys in and the committer has no use for, such as all
// of a store that was opened just now. A stream leaves it when the committer loads it. Each is as of the newest commit
// of its stream.
type idleStreams struct {
	most  int64 // bytes
	bytes int64
	loads uint64 // streams that the committer loaded
	uses  uint64
	all   map[streamKey]*stream
}

// get returns the index of a stream, or nil.
func (is *idleStreams) get(id streamKey) *stream {
	st := is.all[id]
	if st != nil {
		is.uses++
		st.used = is.uses
	}
	return st
}

// put adds an index, for which the least recently used ones make room. The one added stays, however large it is.
func (is *idleStreams) put(id streamKey, st *stream) {
	is.drop(id)
	is.all[id] = st
	is.bytes += st.footprint.Load()
	is.get(id)
	for is.bytes > is.most && len(is.all) > 1 {
		oldest := id
		for other, st := range is.all {
			if st.used < is.all[oldest].used {
				oldest = other
			}
		}
		is.drop(oldest)
	}
}

func (is *idleStreams) drop(id streamKey) {
	if st := is.all[id]; st != nil {
		is.bytes -= st.footprint.Load()
		delete(is.all, id)
	}
}

// loadIdle returns the index of a stream that is not in memory, as of r. loads is the number of idleStreams at the time
// of r: as long as it is the same, nothing was written to the stream since.
func (s *disk) loadIdle(ctx context.Context, r reader, id streamKey, n counters, loads uint64) (*stream, error) {
	select {
	case s.loading <- struct{}{}:
		defer func() { <-s.loading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var st *stream
	s.visible.change(func() {
		if s.visible.idle.loads == loads {
			st = s.visible.idle.get(id) // another reader loaded it meanwhile
		}
	})
	if st != nil {
		return st, nil
	}
	st = &stream{connection: id.connection, name: id.stream, counters: n, dead: make(deadSet),
		heavy: make(map[uint64]bool), mem: bulk.NewTable()}
	if err := st.loadIndex(r, s.visible.idle.most/2); err != nil {
		return nil, err
	}
	st.dead, st.heavy = nil, nil
	st.footprint.Store(st.memory())
	s.visible.change(func() {
		if s.visible.idle.loads == loads {
			s.visible.idle.put(id, st)
		}
	})
	return st, nil
}
