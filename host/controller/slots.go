package controller

import (
	"context"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/host/run"
)

// slots are the places in which runs execute (host.runs). A free slot goes to the queued run whose requester
// holds the fewest, and among those to the first in the queue. Some slots are reserved for runs that the host
// starts by itself. The limit may be exceeded for a while, because a run that waited for its owner continues at
// once.
type slots struct {
	limit   int
	reserve int // part of limit that is reserved for runs that the host starts by itself

	mu          sync.Mutex // guards what follows, and used and waiting of every slot
	used        int
	byRequester map[string]int // of used, by who started the run; "" is the host
	waiting     int            // runs that wait for their owner, or are paused
	queue       []*slot
}

// A slot is the slot of one run, in use or not.
//
// Invariant: a slot in use counts once in used.
type slot struct {
	slots   *slots
	by      string // who started the run
	used    bool
	waiting bool
	granted chan struct{} // closed when a slot is given; nil if it was not queued
}

var _ run.Slots = (*slot)(nil)

func newSlots(limit int) *slots {
	return &slots{limit: limit, reserve: limit / reservedFraction, byRequester: map[string]int{}}
}

func (s *slots) newSlot(by string) *slot { return &slot{slots: s, by: by} }

// hasRoom reports whether there is a slot for a run. The caller holds mu, also for take, next and free.
func (s *slots) hasRoom(p *slot) bool {
	return s.used < s.limit && (p.by == "" || s.used-s.byRequester[""] < s.limit-s.reserve)
}

func (s *slots) take(p *slot) {
	p.used = true
	s.used++
	s.byRequester[p.by]++
}

// next returns the index in the queue of the run that gets a free slot, -1 for none.
func (s *slots) next() int {
	next := -1
	for i, p := range s.queue {
		if s.hasRoom(p) && (next < 0 || s.byRequester[p.by] < s.byRequester[s.queue[next].by]) {
			next = i
		}
	}
	return next
}

// Acquire implements run.Slots.
func (p *slot) Acquire(ctx context.Context) error {
	given := p.request()
	if given == nil {
		return nil
	}
	select {
	case <-given:
		return nil
	case <-ctx.Done():
		p.withdraw()
		return ctx.Err()
	}
}

// request takes a slot and returns nil, or queues p and returns the channel to wait on.
func (p *slot) request() <-chan struct{} {
	s := p.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasRoom(p) { // then no queued run could have it
		s.take(p)
		return nil
	}
	p.granted = make(chan struct{})
	s.queue = append(s.queue, p)
	return p.granted
}

// withdraw leaves the queue, or gives back a slot that was given at the same moment.
func (p *slot) withdraw() {
	s := p.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queue, p); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.release(p)
}

// release gives a slot back and passes it on to queued runs.
func (s *slots) release(p *slot) {
	if !p.used {
		return
	}
	p.used = false
	s.used--
	if s.byRequester[p.by]--; s.byRequester[p.by] == 0 {
		delete(s.byRequester, p.by)
	}
	for i := s.next(); i >= 0; i = s.next() {
		next := s.queue[i]
		s.queue = slices.Delete(s.queue, i, i+1)
		s.take(next)
		close(next.granted)
	}
}

// setWaiting records whether the run waits for its owner or is paused. The caller holds mu.
func (p *slot) setWaiting(still bool) {
	if p.waiting == still {
		return
	}
	if p.waiting = still; still {
		p.slots.waiting++
	} else {
		p.slots.waiting--
	}
}

// Leave implements run.Slots.
func (p *slot) Leave() {
	p.slots.mu.Lock()
	defer p.slots.mu.Unlock()
	p.setWaiting(true)
	p.slots.release(p)
}

// Return implements run.Slots.
func (p *slot) Return() {
	p.slots.mu.Lock()
	defer p.slots.mu.Unlock()
	p.setWaiting(false)
	if !p.used {
		p.slots.take(p)
	}
}

// Release implements run.Slots. A second call does nothing.
func (p *slot) Release() {
	p.slots.mu.Lock()
	defer p.slots.mu.Unlock()
	p.setWaiting(false)
	p.slots.release(p)
}

func (s *slots) count() (used, queued, away int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, len(s.queue), s.waiting
}
