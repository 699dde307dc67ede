package network

import (
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
)

// Limits of reading ahead in one session: at most maxReadAheads bodies with readAheadPieces pieces
// each: one being read, one ready, and one in use by the guest. Bodies shorter than
// readAheadMin are not read ahead.
const (
	readAheadMin    = 1 * abi.MiB
	readAheadPieces = 3
	maxReadAheads   = 8
)

// pieces holds unused pieces: many bodies are short and of unknown length.
var pieces = sync.Pool{New: func() any { return new([readPiece]byte) }}

// A readAhead reads a body while the guest processes the previous piece, so that the next one
// is ready when it is wanted. Like any Stream it has one reader at a time.
type readAhead struct {
	egress.Stream
	start   sync.Once
	stopped chan struct{} // closed when reading has ended

	mu      sync.Mutex // guards the fields below
	changed sync.Cond
	ready   [][]byte // read and not taken yet, in order
	free    [][]byte // unused pieces, in full length
	current []byte   // piece taken last, in full length; nil for none
	unread  []byte   // rest of current
	err     error    // to return after ready
	aborted bool
}

func newReadAhead(s egress.Stream) *readAhead {
	a := &readAhead{Stream: s, stopped: make(chan struct{})}
	a.changed.L = &a.mu
	return a
}

// Read returns bytes that are ready, or waits for some.
func (a *readAhead) Read(p []byte) (int, error) {
	b, err := a.next(len(p))
	return copy(p, b), err
}

// next is Read without a copy. The bytes are valid until the next call.
func (a *readAhead) next(most int) ([]byte, error) {
	a.start.Do(func() { go a.fill() })
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.unread) == 0 && a.current != nil {
		a.free, a.current = append(a.free, a.current), nil
		a.changed.Broadcast()
	}
	for len(a.unread) == 0 && len(a.ready) == 0 && a.err == nil && !a.aborted {
		a.changed.Wait()
	}
	switch {
	case a.aborted:
		return nil, egress.ErrClosed
	case len(a.unread) == 0 && len(a.ready) == 0:
		return nil, a.err
	case len(a.unread) == 0:
		a.unread = a.ready[0]
		a.ready = a.ready[:copy(a.ready, a.ready[1:])]
		a.current = a.unread[:cap(a.unread)]
	}
	n := min(most, len(a.unread))
	b := a.unread[:n:n]
	a.unread = a.unread[n:]
	return b, nil
}

// fill reads to the end, while there is room.
func (a *readAhead) fill() {
	defer close(a.stopped)
	for made := 0; ; {
		a.mu.Lock()
		for len(a.free) == 0 && made == readAheadPieces && !a.aborted {
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
			piece = pieces.Get().(*[readPiece]byte)[:]
			made++
		}
		if a.fillOne(piece) {
			return
		}
	}
}

// fillOne reads one piece, which it hands over when it is full or the guest has nothing
// else. It reports whether the body has ended.
func (a *readAhead) fillOne(piece []byte) (ended bool) {
	for n := 0; ; {
		more, err := a.Stream.Read(piece[n:])
		n += more
		a.mu.Lock()
		a.err = err
		done := err != nil || a.aborted || n == len(piece) || n > 0 && len(a.ready) == 0
		switch {
		case done && n > 0:
			a.ready = append(a.ready, piece[:n])
		case done:
			a.free = append(a.free, piece)
		}
		ended = err != nil || a.aborted
		a.changed.Broadcast()
		a.mu.Unlock()
		if done {
			return ended
		}
	}
}

// Abort implements Stream.
func (a *readAhead) Abort() {
	a.Stream.Abort()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.aborted = true
	a.changed.Broadcast()
}

// Close ends reading and closes the body.
func (a *readAhead) Close() error {
	never := false
	a.start.Do(func() { never = true })
	if !never {
		a.Abort()
		<-a.stopped
		a.recycle()
	}
	return a.Stream.Close()
}

// recycle gives back the pieces, except the current one, which may be on its way to the guest.
func (a *readAhead) recycle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, piece := range append(a.free, a.ready...) {
		pieces.Put((*[readPiece]byte)(piece[:readPiece]))
	}
	a.free, a.ready = nil, nil
}
