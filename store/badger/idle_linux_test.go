package badger_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// readBytes returns the bytes that this process has read from files so far.
func readBytes(t *testing.T) (n int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(b), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A store that was opened again reads what no index run covers once, not for each record.
func TestRecordAfterRestart(t *testing.T) {
	dir := t.TempDir()
	open := func() *badger.Store {
		s, err := badger.Open(dir, badger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	w := newWriter(t, open(), "r1")
	key := func(i int) string { return fmt.Sprint("k", i) }
	fill := make([]byte, 1000)
	for i := range fill {
		fill[i] = 'x'
	}
	const batches, each = 50, 100 // 5 MB
	for n := range batches {
		r := w.commit(func(b *store.Batch) {
			for i := range each {
				b.Append(store.Change{Key: []byte(key(n*each + i)), Data: fmt.Appendf(nil, `"%d%s"`, n, fill)})
			}
		})
		<-r.Done()
		if _, err := r.Result(); err != nil {
			t.Fatal(err)
		}
	}
	look := func(s *badger.Store) (bytes int64) {
		t.Helper()
		before := readBytes(t)
		for i := 0; i < batches*each; i += 200 {
			r, err := s.Record(t.Context(), "c", "s", key(i))
			if err != nil || string(r.Data) != w.model[key(i)] {
				t.Fatalf("%s: %v", key(i), err)
			}
		}
		return readBytes(t) - before
	}
	before := look(w.s)
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	s := open()
	first, next := look(s), look(s)
	if most := before + batches*each*1100; first > most {
		t.Errorf("25 records read %d bytes after a restart, %d before", first, before)
	}
	if next > before+1<<16 {
		t.Errorf("25 records more read %d bytes, %d before the restart", next, before)
	}
	w.s = s
	r := w.commit(func(b *store.Batch) { b.Append(store.Change{Key: []byte(key(200)), Data: []byte(`"new"`)}) })
	<-r.Done()
	look(s)
}
