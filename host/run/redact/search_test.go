package redact

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestSearch: a search finds what looking for each text by itself finds.
func TestSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]byte("abcab\x00\xff"))
		texts := rapid.SliceOfN(rapid.SliceOfN(letters, 3, 12), 1, 40).Draw(t, "texts")
		b := rapid.SliceOfN(letters, 0, 80).Draw(t, "in")
		want := false
		for _, text := range texts {
			want = want || bytes.Contains(b, text)
		}
		if got := newSearch(texts).in(b); got != want {
			t.Fatalf("%q in %q: %v", texts, b, got)
		}
	})
	long := []byte(strings.Repeat("x", 300) + "secret" + strings.Repeat("y", 300))
	if !newSearch([][]byte{long}).in(append([]byte("before"), long...)) || newSearch([][]byte{long}).in(long[1:]) {
		t.Error("a text of more than 255 bytes")
	}
}

// BenchmarkCanary is what looking for secrets costs a record of 200 bytes,
// by how many there are; "each" is one look for each encoding.
func BenchmarkCanary(b *testing.B) {
	record := []byte(`{"id":"item-000012345","title":"A title of some length","body":"` +
		strings.Repeat("words that mean little ", 5) + `","n":12345}`)
	for _, secrets := range []int{1, 4, 64} {
		c := &Canary{}
		for range secrets {
			c.Protect(fmt.Sprintf("secret-%016x", rand.Uint64()))
		}
		b.Run(fmt.Sprintf("%d", secrets), func(b *testing.B) {
			for b.Loop() {
				if c.spelled(record) {
					b.Fatal("found")
				}
			}
		})
		b.Run(fmt.Sprintf("%d-each", secrets), func(b *testing.B) {
			for b.Loop() {
				for _, w := range c.within {
					if bytes.Contains(record, w) {
						b.Fatal("found")
					}
				}
			}
		})
	}
}
