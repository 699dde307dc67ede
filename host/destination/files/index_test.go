package files_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/files"
)

// A table feeds one table of a sink.
type table struct {
	*testing.T
	dir   string
	sink  destination.Sink
	shape *destination.Shape
	have  *destination.Holding
	mark  uint64
}

func newTable(t *testing.T) *table {
	dir := filepath.Join(t.TempDir(), "out")
	sink, err := files.JSONL.Open(t.Context(), "jsonl:"+dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	return &table{T: t, dir: dir, sink: sink, shape: &destination.Shape{}}
}

// put writes the records of n keys, from the first on, in one batch.
func (t *table) put(first, n int) {
	t.Helper()
	b := &destination.Batch{ID: id, From: t.have, To: destination.Holding{Mode: destination.Current}}
	for key := first; key < first+n; key++ {
		t.mark++
		r := destination.Row{Key: fmt.Sprint(key), Version: t.mark, At: time.Unix(0, 0)}
		r.Values, _ = t.shape.Row([]byte(`{"x":1}`), nil)
		b.Rows = append(b.Rows, r)
	}
	b.To.Mark, b.To.Shape = t.mark, t.shape.Clone()
	if err := t.sink.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	to := b.To
	t.have = &to
}

// A large table takes no more memory than a small one, though changes of any of its rows are found.
func TestIndexMemory(t *testing.T) {
	table, key := newTable(t), 0
	heap := func(rows int) int64 {
		for ; key < rows; key += 20_000 {
			table.put(key, 20_000)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // of pools, too
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) // #nosec G115 -- fits
	}
	small := heap(200_000)
	if grown := heap(600_000) - small; grown > 1<<20 {
		t.Errorf("400,000 more rows take %d bytes", grown)
	}
	table.put(7, 1)
	table.put(599_990, 5)
	seen := map[string]int{}
	for _, r := range readTable(t, table.dir, "mail_items", readJSONL) {
		seen[r["_key"]]++
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("key %s comes %d times", key, n)
		}
	}
	if len(seen) != key {
		t.Errorf("%d keys, want %d", len(seen), key)
	}
	runtime.KeepAlive(table.sink)
}

// The file of keys does not keep what was dropped, and what it keeps is found after it was written anew.
func TestIndexGarbage(t *testing.T) {
	defer files.CompactAt(1000)()
	table := newTable(t)
	table.put(0, 5000)
	for range 20 {
		table.put(3000, 100)
	}
	table.put(0, 5000)
	if n := len(readTable(t, table.dir, "mail_items", readJSONL)); n != 5000 {
		t.Errorf("%d rows of 5,000 keys", n)
	}
	if n := files.KeyBytes(table.sink); n > 60_000 {
		t.Errorf("the keys of 5,000 rows take %d bytes", n)
	}
}
