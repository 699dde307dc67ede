//go:build unix

package badger_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
	"github.com/sluicehost/sluice/store/storetest"
)

func imageOf(t *testing.T, s *badger.Store) ([]byte, []store.Counters) {
	t.Helper()
	i, err := s.Image(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	var b bytes.Buffer
	if err := store.WriteItems(t.Context(), &b, i); err != nil {
		t.Fatal(err)
	}
	n, err := i.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), n
}

// TestMoved runs the suite with stores that are copied into a new directory
// wherever others are opened again.
func TestMoved(t *testing.T) {
	fewer(t, 4)
	opts := badger.WithMemRows(badger.Options{Small: true}, 12)
	open := func(t *testing.T) *badger.Store {
		s, err := badger.Open(t.TempDir(), opts)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	storetest.Exercise(t, storetest.Driver{
		Open: func(t *testing.T, _ string) store.Store { return open(t) },
		Reopen: func(t *testing.T, s store.Store) store.Store {
			image, counters := imageOf(t, s.(*badger.Store))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			moved := open(t)
			if err := store.LoadItems(t.Context(), bytes.NewReader(image), moved); err != nil {
				t.Fatal(err)
			}
			again, same := imageOf(t, moved)
			if !bytes.Equal(image, again) || !cmp.Equal(counters, same) {
				t.Fatal("the copy differs")
			}
			return moved
		},
		OpenFailing: failing,
	})
}

// A store of thousands of versions, with index runs, rewritten segments and
// long values, is the same in its copy, and the copy goes on.
func TestImage(t *testing.T) {
	from := t.TempDir()
	grow(t, from, 1, 60)
	s, err := badger.Open(from, crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	long := longData(3 << 20)
	w := newWriter(t, s, "run_long")
	receipt := w.commit(func(b *store.Batch) { b.Append(store.Change{Key: []byte("long"), Data: long}) })
	if _, err := receipt.Result(); err != nil {
		t.Fatal(err)
	}
	image, counters := imageOf(t, s)

	to := t.TempDir()
	c, err := badger.Open(to, crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.LoadItems(t.Context(), bytes.NewReader(image), c); err != nil {
		t.Fatal(err)
	}
	if err := store.LoadItems(t.Context(), bytes.NewReader(image), c); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("second load: %v", err) // never merges
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err = badger.Open(to, crashOptions); err != nil || c.Damage() != nil {
		t.Fatal(err, c.Damage())
	}
	if err := c.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, same := imageOf(t, c)
	if d := cmp.Diff(counters, same); d != "" || !bytes.Equal(image, again) {
		t.Errorf("the copy differs: %s", d)
	}
	(&writer{t: t, s: c, model: crashModel(60)}).compare("a")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	grow(t, to, 61, 90)
	if c, err = badger.Open(to, crashOptions); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	(&writer{t: t, s: c, model: crashModel(90)}).compare("a")
}

func longData(n int) []byte { return fmt.Appendf(nil, `{"v":"%s"}`, strings.Repeat("x", n)) }

// An image is of one commit, whatever is written, rewritten and reclaimed while
// it is read.
func TestImageWhileWriting(t *testing.T) {
	dir := t.TempDir()
	opts := badger.WithBulkRoll(badger.WithMemRows(badger.Options{Small: true}, 500), 64<<10)
	s, err := badger.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := newWriter(t, s, "run_1")
	rnd := rand.New(rand.NewPCG(3, 4))
	churn := func(round int) {
		var last *store.Receipt
		for range 5 {
			last = w.commit(func(b *store.Batch) {
				for range 200 {
					b.Append(store.Change{Key: fmt.Appendf(nil, "k%03d", rnd.IntN(700)),
						Data: fmt.Appendf(nil, `{"round":%d,"r":%d,"x":"%0900d"}`, round, rnd.IntN(9), 0)})
				}
			})
		}
		if _, err := last.Result(); err != nil {
			t.Fatal(err)
		}
	}
	churn(0)
	i, err := s.Image(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	var first, second bytes.Buffer
	if err := store.WriteItems(t.Context(), &first, i); err != nil {
		t.Fatal(err)
	}
	slow := &yielding{w: &second, every: 16 << 10, do: func(n int) { churn(n) }}
	if err := store.WriteItems(t.Context(), slow, i); err != nil {
		t.Fatal(err)
	}
	if slow.n < 3 {
		t.Fatalf("only %d rounds were written meanwhile", slow.n)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Fatal("the image changed")
	}
	c, err := badger.OpenMemory(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := store.LoadItems(t.Context(), &second, c); err != nil {
		t.Fatal(err)
	}
	if err := c.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// yielding does something every so many bytes.
type yielding struct {
	w     io.Writer
	every int
	seen  int
	n     int
	do    func(n int)
}

func (y *yielding) Write(p []byte) (int, error) {
	for y.seen += len(p); y.seen >= y.every; y.seen -= y.every {
		if y.n++; y.n <= 10 {
			y.do(y.n)
		}
	}
	return y.w.Write(p)
}

// A damaged store has no image.
func TestImageOfDamaged(t *testing.T) {
	dir := t.TempDir()
	grow(t, dir, 1, 5)
	bulk := filepath.Join(dir, "db", "bulk", "00000001.bulk")
	edit(t, bulk, func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
	s, err := badger.Open(dir, crashOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	i, err := s.Image(t.Context())
	if err == nil {
		err = store.WriteItems(t.Context(), io.Discard, i)
		i.Close()
	}
	var damage *store.DamageError
	if !errors.As(err, &damage) {
		t.Fatalf("a flipped bit was copied: %v", err)
	}
}

// An image does not keep the engine open when the disk is full.
func TestImageWithoutSpace(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 40)
	s, err := badger.Open(t.TempDir(),
		badger.Options{Small: true, FreeSpace: func(string) (uint64, error) { return free.Load(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	newWriter(t, s, "run_1")
	i, err := s.Image(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	free.Store(1)
	s.MeasureSpace()
	if err := store.WriteItems(t.Context(), io.Discard, i); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("got %v", err)
	}
}

// FuzzItems: whatever is loaded and verified can be written again.
func FuzzItems(f *testing.F) {
	s, err := badger.OpenMemory(badger.Options{Small: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	var b bytes.Buffer
	i, err := s.Image(f.Context())
	if err == nil {
		err = store.WriteItems(f.Context(), &b, i)
		i.Close()
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	item := func(kind store.ItemKind, value string, key ...string) []byte {
		k := store.ItemKey(key...)
		b := append([]byte("sluice store items\n"), byte(kind))
		b = binary.LittleEndian.AppendUint16(b, uint16(len(k)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(value)))
		b = append(append(append(b, k...), value...), make([]byte, 7)...)
		return binary.LittleEndian.AppendUint64(b, 1)
	}
	f.Add(item(store.DocumentItem, `{"revision":1,"data":{}}`, "schedules", "a"))
	f.Add(item(store.RunItem, `{"next":7,"ended":true,"run":{"run_id":"r"}}`, "r"))
	f.Add(item(store.StreamItem, `{"records":7,"deleted":1,"last_version":9,"bytes":1,"updated":1}`, "c", "s"))
	f.Add(item(store.RecordItem, "\x01\x02\x03\x04\x05\x06\x07\x08\x01\x00r", "c", "s", store.ItemNumber(1<<33)))
	f.Add(item(store.PieceItem, "x", "c", "sha256:x", store.ItemNumber(0)))
	f.Fuzz(func(t *testing.T, items []byte) {
		s, err := badger.OpenMemory(badger.Options{Small: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if store.LoadItems(t.Context(), bytes.NewReader(items), s) != nil || s.Verify(t.Context()) != nil {
			return
		}
		imageOf(t, s)
	})
}
