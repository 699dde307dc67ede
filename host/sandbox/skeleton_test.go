package sandbox_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/sluicehost/sluice/host/sandbox"
)

// section returns the content of the first section with that id.
func section(t *testing.T, wasm []byte, id byte) []byte {
	t.Helper()
	for rest := wasm[8:]; len(rest) > 0; {
		size, n := number(rest[1:])
		content := rest[1+n : 1+n+int(size)]
		if rest[0] == id {
			return content
		}
		rest = rest[1+n+int(size):]
	}
	return nil
}

func number(b []byte) (v uint64, n int) {
	for shift := 0; ; shift += 7 {
		v |= uint64(b[n]&0x7f) << shift
		n++
		if b[n-1] < 0x80 {
			return v, n
		}
	}
}

// image is the memory that active segments at constant addresses make.
func image(t *testing.T, data []byte) (memory []byte, segments int) {
	t.Helper()
	memory = make([]byte, 1<<20)
	count, n := number(data)
	data = data[n:]
	for range count {
		if data[0] != 0 || data[1] != 0x41 {
			t.Fatalf("a segment that begins % x", data[:2])
		}
		at, n := number(data[2:])
		if shift := 7 * n; shift < 64 && data[1+n]&0x40 != 0 {
			t.Fatal("a negative address")
		}
		data = data[2+n+1:]
		size, n := number(data)
		copy(memory[at:], data[n:n+int(size)])
		data = data[n+int(size):]
	}
	if len(data) > 0 {
		t.Fatalf("%d bytes left", len(data))
	}
	return memory, int(count)
}

func active(at int64, data string) []byte {
	return join([]byte{0}, i32(at), []byte{0x0b}, sized([]byte(data)))
}

func TestSkeletonKeepsTheMemoryImage(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		var segments [][]byte
		at := int64(random.IntN(100))
		for range random.IntN(50) {
			if random.IntN(10) == 0 {
				at = 0x40000 + int64(len(segments))*2000 - at/2 // sometimes back
			}
			text := make([]byte, 1+random.IntN(40))
			for i := range text {
				text[i] = byte(random.IntN(256))
			}
			segments = append(segments, active(at, string(text)))
			at += int64(len(text)) + int64(random.IntN(3)*random.IntN(500))
		}
		wasm := minimal().with(11, vec(segments...)).bytes()
		bare, err := sandbox.Skeleton(wasm)
		if err != nil {
			t.Fatal(err)
		}
		want, many := image(t, section(t, wasm, 11))
		got, few := image(t, section(t, bare, 11))
		if !bytes.Equal(want, got) || few > many {
			t.Fatalf("%d segments became %d, and another memory", many, few)
		}
	}
}

func TestSkeletonJoinsOnlyWhatItMay(t *testing.T) {
	passive := join([]byte{1}, sized([]byte("p")))
	for name, tt := range map[string]struct {
		module *parts
		joined bool
	}{
		"neighbours":        {minimal().with(11, vec(active(1, "a"), active(2, "b"))), true},
		"a gap of zeros":    {minimal().with(11, vec(active(1, "a"), active(300, "b"))), true},
		"far apart":         {minimal().with(11, vec(active(1, "a"), active(3000, "b"))), false},
		"falling addresses": {minimal().with(11, vec(active(2, "a"), active(1, "b"))), false},
		"two rising groups": {minimal().with(11, vec(active(50, "a"), active(51, "b"), active(1, "c"), active(2, "d"))),
			true},
		"groups that mix": {minimal().with(11, vec(active(1, "a"), active(20, "b"), active(10, "c"), active(30, "d"))),
			false},
		"overlapping":           {minimal().with(11, vec(active(1, "abc"), active(2, "b"))), false},
		"an empty one":          {minimal().with(11, vec(active(1, "a"), active(2, ""))), false},
		"a passive one":         {minimal().with(11, vec(active(1, "a"), passive)), false},
		"named by instructions": {minimal().with(12, []byte{2}).with(11, vec(active(1, "a"), active(2, "b"))), false},
	} {
		wasm := tt.module.bytes()
		bare, err := sandbox.Skeleton(wasm)
		if err != nil {
			t.Fatal(err)
		}
		same := bytes.Equal(section(t, wasm, 11), section(t, bare, 11))
		if same == tt.joined {
			t.Errorf("%s: joined %v", name, !same)
		}
	}
}

func TestSkeletonHasNoBodies(t *testing.T) {
	wasm := raw(join(forever(), calling(rawEmit, 1, 2))...).bytes()
	names := join(sized([]byte("name")), []byte{0, 2, 1, 'n'})
	wasm = append(wasm, join([]byte{0}, sized(custom("producers", 1, 2, 3)), []byte{0}, sized(names))...)
	bare, err := sandbox.Skeleton(wasm)
	if err != nil {
		t.Fatal(err)
	}
	if got := section(t, bare, 10); !bytes.Equal(got, []byte{1, 3, 0, 0, 0x0b}) {
		t.Errorf("code section % x", got)
	}
	if got := section(t, bare, 0); !bytes.Equal(got, names) {
		t.Errorf("custom section %q", got)
	}
	for _, id := range []byte{1, 2, 3, 5, 7} {
		if !bytes.Equal(section(t, wasm, id), section(t, bare, id)) {
			t.Errorf("section %d is another", id)
		}
	}
	if _, err := sandbox.CheckModule(bare, sandbox.ModuleLimits{}); err != nil {
		t.Errorf("the skeleton is no module: %v", err)
	}
}

// FuzzSkeleton: of anything that passed the check it makes a module that passes.
func FuzzSkeleton(f *testing.F) {
	f.Add(minimal().with(11, vec(active(1, "a"), active(2, "b"))).bytes())
	f.Add(raw(forever()...).bytes())
	f.Fuzz(func(t *testing.T, wasm []byte) {
		_, checkErr := sandbox.CheckModule(wasm, sandbox.ModuleLimits{})
		bare, err := sandbox.Skeleton(wasm)
		if checkErr != nil {
			return // it may do anything but panic
		}
		if err != nil {
			t.Fatalf("checked, but %v", err)
		}
		if _, err := sandbox.CheckModule(bare, sandbox.ModuleLimits{}); err != nil {
			t.Fatalf("made % x of % x: %v", bare, wasm, err)
		}
	})
}
