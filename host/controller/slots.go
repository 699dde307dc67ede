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

	mu    sync.Mutex // guards what follows, and held and away of every place
	used  int
	by    map[string]int // of used, by who started the run; "" is the host
	away  int            // runs that wait for their owner, or are paused
	queue []*place
}

// A place is the slot of one run, held or not.
//
// Invariant: a held place counts once in used.
type place struct {
	slots *slots
	by    string // who started the run
	held  bool
	away  bool
	given chan struct{} // closed when a slot is given; nil if it was not queued
}

var _ run.Slots = (*place)(nil)

func newSlots(limit int) *slots {
	return &slots{limit: limit, reserve: limit / reserved, by: map[string]int{}}
}

func (s *slots) place(by string) *place { return &place{slots: s, by: by} }

// open reports whether there is a slot for a run. The caller holds mu, also for take, next and free.
func (s *slots) open(p *place) bool {
	return s.used < s.limit && (p.by == "" || s.used-s.by[""] < s.limit-s.reserve)
}

func (s *slots) take(p *place) {
	p.held = true
	s.used++
	s.by[p.by]++
}

// next returns the index in the queue of the run that gets a free slot, -1 for none.
func (s *slots) next() int {
	next := -1
	for i, p := range s.queue {
		if s.open(p) && (next < 0 || s.by[p.by] < s.by[s.queue[next].by]) {
			next = i
		}
	}
	return next
}

// Acquire implements run.Slots.
func (p *place) Acquire(ctx context.Context) error {
	given := p.ask()
	if given == nil {
		return nil
	}
	select {
	case <-given:
		return nil
	case <-ctx.Done():
		p.giveUp()
		return ctx.Err()
	}
}

// ask takes a slot and returns nil, or queues p and returns the channel to wait on.
func (p *place) ask() <-chan struct{} {
	s := p.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open(p) { // then no queued run could have it
		s.take(p)
		return nil
	}
	p.given = make(chan struct{})
	s.queue = append(s.queue, p)
	return p.given
}

// giveUp leaves the queue, or gives back a slot that was given at the same moment.
func (p *place) giveUp() {
	s := p.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queue, p); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.free(p)
}

// free gives a slot back and passes it on to queued runs.
func (s *slots) free(p *place) {
	if !p.held {
		return
	}
	p.held = false
	s.used--
	if s.by[p.by]--; s.by[p.by] == 0 {
		delete(s.by, p.by)
	}
	for i := s.next(); i >= 0; i = s.next() {
		next := s.queue[i]
		s.queue = slices.Delete(s.queue, i, i+1)
		s.take(next)
		close(next.given)
	}
}

// stand records whether the run waits for its owner or is paused. The caller holds mu.
func (p *place) stand(still bool) {
	if p.away == still {
		return
	}
	if p.away = still; still {
		p.slots.away++
	} else {
		p.slots.away--
	}
}

// Leave implements run.Slots.
func (p *place) Leave() {
	p.slots.mu.Lock()
	defer p.slots.mu.Unlock()
	p.stand(true)
	p.slots.free(p)
}

// Return implements run.Slots.
func (p *place) Return() {
	p.slots.mu.Lock()
	defer p.slots.mu.Unlock()
	p.stand(false)
	if !p.held {
		p.slots.take(p)
	}
}

// Release implements run.Slots. A second call does nothing.
func (p *place) Release() {
	p.slots.mu.Lock()
	defer p.slots.mu.Unlock()
	p.stand(false)
	p.slots.free(p)
}

func (s *slots) count() (used, queued, away int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, len(s.queue), s.away
}
