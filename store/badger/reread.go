package badger

import (
	"bytes"

	"github.com/sluicehost/sluice/store/badger/bulk"
)

// A follower makes use of habit: a source that is read again lists its records
// in the order of the last time. When two keys in a row turn out to have
// versions close to each other, the segment around them is read, and the keys
// that come next are looked for right there, without hashing, filters or pages.
// An entry found this way is current, because its version is not superseded.
type follower struct {
	entries []bulk.Entry
	at      int    // of the entry expected next
	last    uint64 // version found last, by whatever means
	misses  int    // keys in a row that were not where they were expected
}

// patience is how many misses end the search for a habit.
const patience = 64

// near is how far apart versions of neighbours may be.
const near = 16

// next looks the key up at the place it is expected.
func (f *follower) next(c *committer, st *stream, k *candidate) error {
	if f.entries == nil {
		return nil
	}
	if f.at == len(f.entries) {
		if err := f.load(c, st, f.last+1); err != nil || f.entries == nil {
			return err
		}
	}
	for i := f.at; i < min(f.at+near, len(f.entries)); i++ {
		e := &f.entries[i]
		if !bytes.Equal(e.Key, k.change.Key) || st.dead.has(e.Version) {
			continue
		}
		f.at, f.last, f.misses = i+1, e.Version, 0
		k.had = true
		if k.same = e.Op == k.change.Op && bytes.Equal(e.Data, k.change.Data); !k.same {
			k.old = c.hash.RowOf(k.h1, k.h2, e.Change, e.Version)
		}
		return nil
	}
	if f.misses++; f.misses > patience {
		f.entries, f.misses = nil, 0
	}
	return nil
}

// found tells the follower what a lookup in the runs said.
func (f *follower) found(c *committer, st *stream, r bulk.Row) error {
	v := r.At()
	beside := v > f.last && v-f.last <= near
	f.last = v
	if !beside {
		f.entries = nil
		return nil
	}
	return f.load(c, st, v+1)
}

// load reads the segment that holds version v, if it is durable.
func (f *follower) load(c *committer, st *stream, v uint64) error {
	f.entries, f.at = nil, 0
	if v > st.shown {
		return nil
	}
	prefix := numbered(kindSegment, st.n.number)
	return c.base.scan(prefix, c.base.segmentOf(st.n.number, v), false, func(_, payload []byte) (bool, error) {
		for e, err := range bulk.Entries(payload) {
			if err != nil {
				return false, err
			}
			if e.Version >= v {
				f.entries = append(f.entries, e)
			}
		}
		// v may be superseded and its segment end before it.
		return len(f.entries) == 0, nil
	})
}
