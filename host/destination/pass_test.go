package destination_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/store"
)

// A moving source has a record for each key, one of which changes after each page.
type moving struct {
	keys    []uint64 // key i has version keys[i]
	version uint64
}

func (m *moving) Records(_ context.Context, q store.RecordQuery) (store.RecordPage, error) {
	page := store.RecordPage{Version: m.version, After: q.After}
	at := map[uint64]int{}
	for key, version := range m.keys {
		at[version] = key
	}
	for v := q.After + 1; v <= m.version; v++ {
		key, ok := at[v]
		if !ok {
			continue
		}
		if page.More = len(page.Records) == q.Limit; page.More {
			break
		}
		page.Records = append(page.Records, store.Record{Key: fmt.Sprint(key), Version: v, Data: []byte(`{}`)})
		page.After = v
	}
	m.version++
	m.keys[0] = m.version
	return page, nil
}

// A recorder is a sink that checks which batches are called new.
type recorder struct {
	destination.Sink
	*testing.T
	has  map[string]bool
	news int
}

func (r *recorder) Apply(_ context.Context, b *destination.Batch) error {
	if b.New {
		r.news++
	}
	for _, row := range b.Rows {
		if b.New && r.has[row.Key] {
			r.Errorf("key %s comes again, in a batch that is called new", row.Key)
		}
		r.has[row.Key] = true
	}
	return nil
}

// A batch is called new while the table cannot have its keys: before the first change of a record that was brought.
func TestNew(t *testing.T) {
	m := &moving{version: 30_000}
	for v := range m.version {
		m.keys = append(m.keys, v+1)
	}
	r := &recorder{T: t, has: map[string]bool{}}
	id := destination.StreamID{Connection: "c", Stream: "s"}
	w := destination.Wanted{StreamID: id, Mode: destination.Current, Last: m.version}
	var have *destination.Holding
	bring := func() {
		t.Helper()
		if err := destination.Bring(t.Context(), m, r, w, have, func(int) {}); err != nil {
			t.Fatal(err)
		}
	}
	bring()
	if r.news != 3 || len(r.has) != len(m.keys) {
		t.Errorf("%d new batches, %d keys of %d", r.news, len(r.has), len(m.keys))
	}
	have = &destination.Holding{Mode: destination.Current, Mark: w.Last, Shape: &destination.Shape{}}
	w.Last = m.version
	if bring(); r.news != 3 {
		t.Error("a batch for a table that had rows is called new")
	}
}
