package network

import (
	"sync"

	"github.com/sluicehost/sluice/abi"
)

// Limits of reading ahead in one session: at most aheadMost bodies with aheadPieces pieces
// each: one being read, one ready, and one in use by the guest. Bodies shorter than
// aheadFrom are not read ahead.
const (
	aheadFrom   = 1 * abi.MiB
	aheadPieces = 3
	aheadMost   = 8
)

// An ahead reads a body while the guest processes the previous piece, so that the next one
// is ready when it is wanted. Like any Stream it has one reader at a time.
type ahead struct {
	Stream
	start sync.Once
	gone  chan struct{} // closed when reading has ended

	mu      sync.Mutex // guards the fields below
	changed sync.Cond
	ready   [][]byte // read and not taken yet, in order
	free    [][]byte // unused pieces, in full length
	lent    []byte   // piece taken last, in full length; nil for none
	left    []byte   // rest of lent
	err     error    // to return after ready
	aborted bool
}

func newAhead(s Stream) *ahead {
	a := &ahead{Stream: s, gone: make(chan struct{})}
	a.changed.L = &a.mu
	return a
}

// Read returns bytes that are ready, or waits for some.
func (a *ahead) Read(p []byte) (int, error) {
	b, err := a.next(len(p))
	return copy(p, b), err
}

// next is Read without a copy. The bytes are valid until the next call.
func (a *ahead) next(most int) ([]byte, error) {
	a.start.Do(func() { go a.fill() })
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.left) == 0 && a.lent != nil {
		a.free, a.lent = append(a.free, a.lent), nil
		a.changed.Broadcast()
	}
	for len(a.left) == 0 && len(a.ready) == 0 && a.err == nil && !a.aborted {
		a.changed.Wait()
	}
	switch {
	case a.aborted:
		return nil, errClosed
	case len(a.left) == 0 && len(a.ready) == 0:
		return nil, a.err
	case len(a.left) == 0:
		a.left = a.ready[0]
		a.ready = a.ready[:copy(a.ready, a.ready[1:])]
		a.lent = a.left[:cap(a.left)]
	}
	n := min(most, len(a.left))
	b := a.left[:n:n]
	a.left = a.left[n:]
	return b, nil
}

// fill reads to the end, while there is room.
func (a *ahead) fill() {
	defer close(a.gone)
	for made := 0; ; {
		a.mu.Lock()
		for len(a.free) == 0 && made == aheadPieces && !a.aborted {
			a.changed.Wait()
		}
		var piece []byte
		if n := len(a.free); n > 0 {
			piece, a.free = a.free[n-1], a.free[:n-1]
		}
		stop := a.aborted
		a.mu.Unlock()
		if stop {
			return
		}
		if piece == nil {
			piece = make([]byte, readPiece)
			made++
		}
		if a.fillOne(piece) {
			return
		}
	}
}

// fillOne reads one piece, which it hands over when it is full or the guest has nothing
// else. It reports whether the body has ended.
func (a *ahead) fillOne(piece []byte) (over bool) {
	for n := 0; ; {
		more, err := a.Stream.Read(piece[n:])
		n += more
		a.mu.Lock()
		a.err = err
		done := err != nil || a.aborted || n == len(piece) || n > 0 && len(a.ready) == 0
		if done && n > 0 {
			a.ready = append(a.ready, piece[:n])
		}
		over = err != nil || a.aborted
		a.changed.Broadcast()
		a.mu.Unlock()
		if done {
			return over
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

// Close ends reading and closes the body.
func (a *ahead) Close() error {
	never := false
	a.start.Do(func() { never = true })
	if !never {
		a.Abort()
		<-a.gone
	}
	return a.Stream.Close()
}
