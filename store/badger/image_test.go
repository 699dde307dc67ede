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
	if err := i.(store.Copier).Copy(t.Context(), &b); err != nil {
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
			if err := moved.Load(t.Context(), bytes.NewReader(image)); err != nil {
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
	if err := c.Load(t.Context(), bytes.NewReader(image)); err != nil {
		t.Fatal(err)
	}
	if err := c.Load(t.Context(), bytes.NewReader(image)); !errors.Is(err, store.ErrNotEmpty) {
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
						Data: fmt.Appendf(nil, `{"round":%d,"r":%d}`, round, rnd.IntN(9))})
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
	if err := i.(store.Copier).Copy(t.Context(), &first); err != nil {
		t.Fatal(err)
	}
	slow := &yielding{w: &second, every: 16 << 10, do: func(n int) { churn(n) }}
	if err := i.(store.Copier).Copy(t.Context(), slow); err != nil {
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
	if err := c.Load(t.Context(), &second); err != nil {
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
		err = i.(store.Copier).Copy(t.Context(), io.Discard)
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
	if err := i.(store.Copier).Copy(t.Context(), io.Discard); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("got %v", err)
	}
}

// frame is one key of an image.
func frame(k string, v []byte) []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(k)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
	return append(append(b, k...), v...)
}

func imageFrames(frames ...[]byte) []byte {
	b := append([]byte("sluice store image\n"), 2, 0, 0, 0)
	for _, f := range frames {
		b = append(b, f...)
	}
	return binary.LittleEndian.AppendUint64(append(b, 0, 0, 0, 0, 0, 0), uint64(len(frames)))
}

// What is no image is refused, and takes no more memory than it has bytes.
func TestHostileImage(t *testing.T) {
	layout := func(text string) []byte {
		counters := make([]byte, 64)
		counters[0] = 1
		return imageFrames(
			frame("O\x00\x01cs", counters),
			frame("P\x00\x00\x00\x00\x00\x00\x00\x01", []byte(text)))
	}
	for name, image := range map[string][]byte{
		"empty":            {},
		"another file":     []byte("PK\x03\x04 and so on and so on and so on"),
		"newer format":     append([]byte("sluice store image\n"), 9, 0, 0, 0),
		"cut":              imageFrames(frame("B", nil))[:30],
		"chain":            imageFrames(frame("A", nil)),
		"bulk file":        imageFrames(frame("V", nil)),
		"chunk":            imageFrames(frame("Z", nil)),
		"low kind":         imageFrames(frame("\x00", nil)),
		"engine's own key": imageFrames(frame("!badger!head", nil)),
		"twice":            imageFrames(frame("D\x00", nil), frame("D\x00", nil)),
		"out of order":     imageFrames(frame("E", nil), frame("D", nil)),
		"huge value":       append(imageFrames()[:23], 1, 0, 0xff, 0xff, 0xff, 0xff, 'D'),
		"large claim":      append(imageFrames()[:23], 1, 0, 0, 0, 0, 2, 'D', 'x'),
		"long key":         append(imageFrames()[:23], 0xff, 0xff, 0, 0, 0, 0),
		"goes on":          append(imageFrames(), 0),
		"wrong count":      append(imageFrames()[:29], 7, 0, 0, 0, 0, 0, 0, 0),
		"endless run":      layout(`{"runs":[{"id":1,"bits":63,"rows":1,"blocks":1}]}`),
		"doomed for ever":  layout(`{"doomed":[{"id":1,"bits":60,"rows":1,"blocks":1}]}`),
		"being built":      layout(`{"building":{"id":1,"bits":60,"rows":1,"blocks":1}}`),
		"huge filter":      layout(`{"runs":[{"id":1,"bits":0,"rows":1,"blocks":200000000}]}`),
		"negative filter":  layout(`{"runs":[{"id":1,"bits":0,"rows":1,"blocks":-1}]}`),
		"no filter":        layout(`{"runs":[{"id":1,"bits":0,"rows":1,"blocks":0}]}`),
		"no layout":        layout(`[`),
		"short counters":   imageFrames(frame("O\x00\x01cs", []byte("x"))),
		"lost records":     imageFrames(frame("O\x00\x01cs", bytes.Repeat([]byte{1}, 64))),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := badger.OpenMemory(badger.Options{Small: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			err = s.Load(t.Context(), bytes.NewReader(image))
			if err == nil {
				err = s.Verify(t.Context())
			}
			if err == nil {
				t.Fatal("it was taken")
			}
			t.Log(err)
		})
	}
}

// FuzzImage: whatever is loaded and verified is the image of what it became.
func FuzzImage(f *testing.F) {
	f.Add(imageFrames())
	f.Add(imageFrames(frame("B", make([]byte, 8)), frame("D\x00", []byte("{}"))))
	f.Fuzz(func(t *testing.T, image []byte) {
		s, err := badger.OpenMemory(badger.Options{Small: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if s.Load(t.Context(), bytes.NewReader(image)) != nil || s.Verify(t.Context()) != nil {
			return
		}
		if again, _ := imageOf(t, s); !bytes.Equal(image, again) {
			t.Fatalf("%q became %q", image, again)
		}
	})
}
