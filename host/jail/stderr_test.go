package jail

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever the writes were, the last 16 KiB are kept.
func TestTailKeepsTheEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var all []byte
		kept := &tail{}
		for range random.IntN(12) {
			chunk := make([]byte, random.IntN(3*StderrBytes/2))
			for i := range chunk {
				chunk[i] = byte(random.Uint32())
			}
			all = append(all, chunk...)
			if n, err := kept.Write(chunk); n != len(chunk) || err != nil {
				t.Fatalf("write: %d %v", n, err)
			}
		}
		want := all[max(0, len(all)-StderrBytes):]
		if got := kept.bytes(); !bytes.Equal(got, want) {
			t.Fatalf("kept %d bytes of %d, not the end", len(got), len(all))
		}
		if got, want := kept.start(), all[:min(len(all), stderrHead)]; !bytes.Equal(got, want) {
			t.Fatalf("kept %d bytes of %d, not the beginning", len(got), len(all))
		}
	}
}

// A worker that writes as fast as it can does not keep its host reading.
func TestStderrIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := slowTail{&tail{}}
		for range 100 {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 100*stderrPause {
			t.Errorf("3 MiB in %v", took)
		}
	})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	kept := follow(r)
	if _, err := io.Copy(w, io.LimitReader(zeros{}, stderrBurst)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("the end"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if <-kept.done; string(kept.bytes()[StderrBytes-7:]) != "the end" {
		t.Errorf("kept %q", kept.bytes())
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
