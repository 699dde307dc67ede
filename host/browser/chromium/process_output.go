package chromium

import (
	"io"
	"strings"
	"sync"
)

// outputBytes is how much of what a browser prints is kept.
const outputBytes = 16 << 10

// tail keeps the end of what is written to it. It never fails, so that who writes
// never waits (B177). It may be used from any goroutine.
type tail struct {
	mu   sync.Mutex // guards kept
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-outputBytes):]...)
	if over := len(t.kept) - outputBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

// line is the first line, for a message: at most 200 bytes.
func (t *tail) line() string {
	first, _, _ := strings.Cut(strings.TrimSpace(t.String()), "\n")
	return first[:min(len(first), 200)]
}

// lastLine is the last line, for a message: at most 300 bytes.
func (t *tail) lastLine() string {
	text := strings.TrimSpace(t.String())
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return last[:min(len(last), 300)]
}

// drain reads until the other end is closed, or the deadline of r is over.
func (t *tail) drain(r io.ReadCloser) {
	defer r.Close()
	_, _ = io.Copy(t, r)
}
