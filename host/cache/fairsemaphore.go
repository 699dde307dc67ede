package cache

import (
	"context"
	"sync"
)

// A FairSemaphore limits how many work concurrently. A single asker gets at most half of the places, so that nobody can
// keep all others waiting. It is safe for concurrent use.
type FairSemaphore struct {
	all chan struct{}

	mu sync.Mutex // guards by
	by map[string]*own
}

// An own holds the places of one asker.
type own struct {
	places chan struct{}
	users  int // who have or want a place; guarded by FairSemaphore.mu
}

// NewFairSemaphore returns a FairSemaphore with the given number of places, at least two.
func NewFairSemaphore(places int) *FairSemaphore {
	return &FairSemaphore{all: make(chan struct{}, places), by: map[string]*own{}}
}

// Take waits for a place until ctx ends. The caller must call leave to return it.
func (t *FairSemaphore) Take(ctx context.Context, who string) (leave func(), err error) {
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
