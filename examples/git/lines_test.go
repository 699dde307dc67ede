package main

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// slowCount is the textbook longest common subsequence.
func slowCount(a, b []string) lineCount {
	row := make([]int, len(b)+1)
	for i := range a {
		diagonal := 0
		for j := range b {
			above := row[j+1]
			if a[i] == b[j] {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return lineCount{added: len(b) - row[len(b)], deleted: len(a) - row[len(b)]}
}

func randomLines(r *rand.Rand, n, different int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = strings.Repeat("x", r.IntN(different)) + "\n"
	}
	if n > 0 && r.IntN(3) == 0 {
		lines[n-1] = strings.TrimSuffix(lines[n-1], "\n") + "!" // no end of line
	}
	return lines
}

func TestCountLines(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := newLineCounter()
	for range 3000 {
		different := 1 + r.IntN(30)
		a := randomLines(r, r.IntN(200), different)
		b := randomLines(r, r.IntN(200), different)
		if r.IntN(2) == 0 && len(a) > 0 { // mostly the same
			b = append([]string(nil), a...)
			for range r.IntN(5) {
				b[r.IntN(len(b))] = strings.Repeat("y", r.IntN(3)) + "\n"
			}
		}
		x, y := strings.Join(a, ""), strings.Join(b, "")
		want := slowCount(split(x), split(y))
		if got := c.count([]byte(x), []byte(y)); got != want {
			t.Fatalf("%+v, want %+v, of\n%q\n%q", got, want, x, y)
		}
	}
}

func split(s string) []string {
	var out []string
	for line := range strings.Lines(s) {
		out = append(out, line)
	}
	return out
}

// Above its bound a comparison is left out, not begun.
func TestCountLinesBound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	a, b := randomLines(r, 120_000, 50), randomLines(r, 120_000, 50)
	if got := newLineCounter().count([]byte(strings.Join(a, "")), []byte(strings.Join(b, ""))); got != unknownLines {
		t.Errorf("count %+v", got)
	}
}

func TestSplitMessage(t *testing.T) {
	for _, c := range []struct{ message, subject, body string }{
		{"", "", ""},
		{"one", "one", ""},
		{"\n\none\ntwo  \n\nbody\n\nmore\n", "one two", "body\n\nmore"},
		{"one\n \nbody", "one", "body"},
	} {
		if subject, body := splitMessage(c.message); subject != c.subject || body != c.body {
			t.Errorf("%q: %q and %q", c.message, subject, body)
		}
	}
}

func TestRecent(t *testing.T) {
	r := newRecent[int](100, func(b []byte) int { return len(b) })
	for i := range 1000 {
		r.put(i, make([]byte, 10))
		if i%10 == 0 {
			if _, ok := r.get(0); !ok && i < 5 {
				t.Error("a new value is gone")
			}
		}
		if n := len(r.young) + len(r.old); n > 12 {
			t.Fatalf("%d values of 10 bytes in 100 bytes", n)
		}
	}
	if _, ok := r.get(999); !ok {
		t.Error("the last value is gone")
	}
	r.put(1, make([]byte, 90))
	if _, ok := r.get(1); ok {
		t.Error("a value that fills the cache is kept")
	}
}

func TestNameCursor(t *testing.T) {
	names := []string{"refs/heads/a", "refs/heads/b"}
	c, whole := newNameCursor(names)
	if !whole || strings.Join(c.names(), " ") != strings.Join(names, " ") {
		t.Errorf("%v, whole %v", c.names(), whole)
	}
	r := rand.New(rand.NewPCG(5, 6))
	var many []string
	for range 50_000 {
		var b strings.Builder
		for range 10 {
			b.WriteByte(byte('a' + r.IntN(26)))
		}
		many = append(many, b.String())
	}
	if c, whole = newNameCursor(many); whole || len(c.Packed) > maxPacked || len(c.names()) != c.Count || c.Count == 0 {
		t.Errorf("%d names in %d bytes, whole %v", c.Count, len(c.Packed), whole)
	}
	if broken := (nameCursor{Count: 3, Packed: "?"}); broken.names() != nil {
		t.Error("a broken cursor has names")
	}
}
