package cache

import (
	"context"
	"sync"
)

// Turns are places of those who work at the same time. Whoever asks has half of them at most,
// so that one who asks for much keeps nobody else waiting. Its methods may be called
// concurrently.
type Turns struct {
	all chan struct{}

	mu sync.Mutex // guards by
	by map[string]*own
}

// own are the places that one asker may have.
type own struct {
	places chan struct{}
	users  int // that have or want one; guarded by Turns.mu
}

// NewTurns makes so many places, two at least.
func NewTurns(places int) *Turns {
	return &Turns{all: make(chan struct{}, places), by: map[string]*own{}}
}

// Take waits for a place, until ctx ends. Whoever got it calls leave.
func (t *Turns) Take(ctx context.Context, who string) (leave func(), err error) {
	t.mu.Lock()
	o := t.by[who]
	if o == nil {
		o = &own{places: make(chan struct{}, cap(t.all)/2)}
		t.by[who] = o
	}
	o.users++
	t.mu.Unlock()
	gone := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if o.users--; o.users == 0 {
			delete(t.by, who)
		}
	}
	select {
	case o.places <- struct{}{}:
	case <-ctx.Done():
		gone()
		return nil, ctx.Err()
	}
	select {
	case t.all <- struct{}{}:
	case <-ctx.Done():
		<-o.places
		gone()
		return nil, ctx.Err()
	}
	return func() { <-t.all; <-o.places; gone() }, nil
}
