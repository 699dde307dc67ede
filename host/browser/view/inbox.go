package view

import "sync"

// maxWaiting are the messages that wait for a page that is slow.
const maxWaiting = 256

// An inbox holds what a viewer asked for, in order, until it is applied. A move
// behind a move takes its place.
type inbox struct {
	wake chan struct{}

	mu   sync.Mutex // guards list
	list []message
}

func (b *inbox) init() { b.wake = make(chan struct{}, 1) }

// put adds a message; when the inbox is full moves go first (B226). It reports
// false when there was no room.
func (b *inbox) put(m message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.list); n > 0 && m.move && b.list[n-1].move && same(b.list[n-1], m) {
		b.list[n-1] = m
		return true
	}
	if len(b.list) >= maxWaiting {
		kept := b.list[:0]
		for _, o := range b.list {
			if !o.move {
				kept = append(kept, o)
			}
		}
		b.list = kept
	}
	if len(b.list) >= maxWaiting {
		return false
	}
	b.list = append(b.list, m)
	signal(b.wake)
	return true
}

// same reports whether two moves are of the same pointer.
func same(a, b message) bool { return a.kind == b.kind && a.input.TouchID == b.input.TouchID }

func (b *inbox) take() (message, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) == 0 {
		b.list = nil
		return message{}, false
	}
	m := b.list[0]
	b.list = b.list[1:]
	return m, true
}
