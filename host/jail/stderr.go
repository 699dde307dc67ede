package jail

import (
	"io"
	"os"
	"sync"
	"time"
)

// StderrBytes is how many of the last bytes of a worker's diagnostics the host keeps.
const StderrBytes = 16 << 10

// stderrHead is how many of the first bytes are kept as well: a crashing Go runtime states the reason in its first
// line, which the traces may push out of the end.
const stderrHead = 1 << 10

// How much a worker may write to descriptor 2 at full speed, and the pause between later reads. A normal worker writes
// a few lines; a hostile one must not keep the host busy reading.
const (
	stderrBurst = 1 << 20
	stderrPause = 10 * time.Millisecond // after each read of at most 32 KiB
)

// A tail keeps the last StderrBytes of what a worker writes to descriptor 2.
type tail struct {
	done chan struct{} // closed at the end of the pipe

	mu   sync.Mutex // guards the fields below
	head []byte
	kept []byte
}

// follow reads pipe until it ends, then closes it.
func follow(pipe *os.File) *tail {
	t := &tail{done: make(chan struct{})}
	go func() {
		defer close(t.done)
		defer pipe.Close()                    // only read from
		_, _ = io.CopyN(t, pipe, stderrBurst) // an error is treated as the end
		_, _ = io.Copy(slowTail{t}, pipe)
	}()
	return t
}

// A slowTail writes to its tail with a pause before each write.
type slowTail struct{ *tail }

func (s slowTail) Write(p []byte) (int, error) {
	time.Sleep(stderrPause)
	return s.tail.Write(p)
}

// Write keeps the first and last bytes written so far. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	t.head = append(t.head, p[:min(n, stderrHead-len(t.head))]...)
	if n >= StderrBytes {
		t.kept, p = t.kept[:0], p[n-StderrBytes:]
	}
	if over := len(t.kept) + len(p) - StderrBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	t.kept = append(t.kept, p...)
	return n, nil
}

// bytes returns a copy of the last bytes.
func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte(nil), t.kept...)
}

// start returns a copy of the first stderrHead bytes.
func (t *tail) start() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte(nil), t.head...)
}
