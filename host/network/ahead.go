package network

import (
	"sync"

	"github.com/sluicehost/sluice/abi"
)

// What reading ahead costs a session at most: aheadMost bodies, aheadBytes each.
// Shorter bodies than aheadFrom are not worth it.
const (
	aheadFrom  = 1 * abi.MiB
	aheadBytes = 2 * readPiece
	aheadPiece = readPiece / 2
	aheadMost  = 8
)

// An ahead body is read while the guest works on what it has: its next call finds
// the next piece there. Like any Stream it is for one reader at a time.
type ahead struct {
	Stream
	start sync.Once
	gone  chan struct{} // closed when nothing reads any more

	mu      sync.Mutex // guards what follows
	changed sync.Cond
	have    []byte // read, and not taken yet
	err     error  // behind have
	aborted bool
}

func newAhead(s Stream) *ahead {
	a := &ahead{Stream: s, gone: make(chan struct{})}
	a.changed.L = &a.mu
	return a
}

// Read gives what is there, or waits for it.
func (a *ahead) Read(p []byte) (int, error) {
	a.start.Do(func() { go a.fill() })
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.have) == 0 && a.err == nil && !a.aborted {
		a.changed.Wait()
	}
	if a.aborted {
		return 0, errClosed
	}
	if len(a.have) == 0 {
		return 0, a.err
	}
	n := copy(p, a.have)
	left := copy(a.have, a.have[n:])
	a.have = a.have[:left]
	a.changed.Broadcast()
	return n, nil
}

// fill reads until the end, as long as there is room.
func (a *ahead) fill() {
	defer close(a.gone)
	piece := make([]byte, aheadPiece)
	for {
		n, err := a.Stream.Read(piece)
		a.mu.Lock()
		for len(a.have)+n > aheadBytes && !a.aborted {
			a.changed.Wait()
		}
		a.have = append(a.have, piece[:n]...)
		a.err = err
		stop := err != nil || a.aborted
		a.changed.Broadcast()
		a.mu.Unlock()
		if stop {
			return
		}
	}
}

// Abort implements Stream.
func (a *ahead) Abort() {
	a.Stream.Abort()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.aborted = true
	a.changed.Broadcast()
}

// Close ends reading, and the body.
func (a *ahead) Close() error {
	never := false
	a.start.Do(func() { never = true })
	if !never {
		a.Abort()
		<-a.gone
	}
	return a.Stream.Close()
}
