package jail

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// S11: whatever the writes were, the last 16 KiB are kept.
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
