package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/store"
)

// pieces are a sealed history of some entries, and the entries.
func pieces(t *testing.T, s *sealer) (sealed [][]byte, all []entry) {
	t.Helper()
	all = []entry{
		{kind: entryCall, code: 1, hash: hashOf(nil)},
		{kind: entryReply, at: 1_700_000_000_000, hash: hashOf([]byte("start"))},
		{kind: entryResult, code: 9, data: bytes.Repeat([]byte("x"), 700)},
		{kind: entryPassed, at: 1_700_000_000_001},
		{kind: entryAnswer, data: []byte(`{"id":"q"}`)},
		{kind: entryMark, data: []byte(`{"id":"r"}`)},
	}
	var text []byte
	for _, e := range all {
		text = e.append(text)
	}
	var last hash16
	for n := 0; len(text) > 0; n++ { // entries go on in the next piece
		part := text[:min(len(text), 300)]
		text = text[len(part):]
		sealed = append(sealed, s.seal(uint64(n), append(last[:], part...)))
		last = tagOf(sealed[n])
	}
	return sealed, all
}

// played reads a history until its end or the first error.
func played(s *sealer, sealed [][]byte) (out []entry, err error) {
	p := &journalReader{sealer: s, pieces: uint64(len(sealed)),
		load: func(_ context.Context, n uint64) ([]byte, error) { return sealed[n], nil }}
	for {
		e, err := p.take(context.Background())
		if err != nil || e.kind == 0 {
			return out, err
		}
		out = append(out, e)
	}
}

func testSealer(t *testing.T, key byte, id store.RunID) *sealer {
	t.Helper()
	s, err := newSealer(bytes.Repeat([]byte{key}, 32), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHistoryPieces(t *testing.T) {
	s := testSealer(t, 1, "run_a")
	sealed, want := pieces(t, s)
	got, err := played(s, sealed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{}),
		cmp.Transformer("text", func(b []byte) string { return string(b) })); diff != "" {
		t.Error(diff)
	}
	for _, piece := range sealed {
		if bytes.Contains(piece, []byte("xxx")) {
			t.Error("a piece can be read")
		}
	}
}

// Whatever is changed, cut, put elsewhere, or sealed for another run or with another key is
// detected: nothing is answered from it.
func TestHistoryDamaged(t *testing.T) {
	s := testSealer(t, 1, "run_a")
	sealed, _ := pieces(t, s)
	refused := func(name string, s *sealer, change func([][]byte) [][]byte) {
		t.Helper()
		var copied [][]byte
		for _, p := range sealed {
			copied = append(copied, bytes.Clone(p))
		}
		if _, err := played(s, change(copied)); !errors.Is(err, errHistory) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n, piece := range sealed {
		for at := range piece {
			refused(fmt.Sprintf("a bit of byte %d of piece %d is flipped", at, n), s, func(p [][]byte) [][]byte {
				p[n][at] ^= 1 << (at % 8)
				return p
			})
		}
	}
	refused("cut", s, func(p [][]byte) [][]byte { p[1] = p[1][:len(p[1])-1]; return p })
	refused("empty", s, func(p [][]byte) [][]byte { p[0] = nil; return p })
	refused("swapped", s, func(p [][]byte) [][]byte { p[0], p[1] = p[1], p[0]; return p })
	refused("one is missing", s, func(p [][]byte) [][]byte { return append(p[:1], p[2:]...) })
	refused("the last is missing", s, func(p [][]byte) [][]byte { return p[:len(p)-1] })
	refused("another run", testSealer(t, 1, "run_b"), func(p [][]byte) [][]byte { return p })
	refused("another key", testSealer(t, 2, "run_a"), func(p [][]byte) [][]byte { return p })
	refused("an older piece in the same place", s, func(p [][]byte) [][]byte {
		another := hashOf([]byte("another"))
		p[1] = s.seal(1, append(another[:], "old"...))
		return p
	})
}

func FuzzHistoryEntry(f *testing.F) {
	for _, e := range []entry{{kind: entryCall}, {kind: entryResult, data: []byte("x")}, {kind: entryReply, at: 3},
		{kind: entryPassed, at: 3}, {kind: entryAnswer}, {kind: entryMark, data: []byte("{}")}} {
		f.Add(e.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, rest, err := parseEntry(b)
		if err != nil {
			if !errors.Is(err, errHistory) {
				t.Error(err)
			}
			return
		}
		if again := append(e.append(nil), rest...); !bytes.Equal(again, b) {
			t.Errorf("%x became %x", b, again)
		}
	})
}

// What is written is read again, also an answer that is longer than a piece, and one behind it.
func TestHistoryCut(t *testing.T) {
	s := testSealer(t, 1, "run_a")
	h := &history{parts: &parts{deps: Deps{History: &History{}}}, sealer: s}
	var want []entry
	var ready []store.JournalPiece
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 10, 2 * store.MaxJournalPiece, 10, store.MaxJournalPiece, pieceEntries} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		e := entry{kind: entryResult, data: data}
		h.write(e)
		if want = append(want, e); n == 10 {
			h.sealBuffered()
		}
		ready, h.ready = append(ready, h.ready...), nil // a commit takes them
	}
	h.sealBuffered()
	var sealed [][]byte
	for i, p := range append(ready, h.ready...) {
		if sealed = append(sealed, p.Data); p.N != uint64(i) || len(p.Data) > store.MaxJournalPiece {
			t.Errorf("piece %d is number %d, of %d bytes", i, p.N, len(p.Data))
		}
	}
	got, err := played(s, sealed)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d entries, want %d: %v", len(got), len(want), err)
	}
	for i := range want {
		if !bytes.Equal(got[i].data, want[i].data) {
			t.Errorf("entry %d is another", i)
		}
	}
}
