package controller

import (
	"context"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/host/run"
)

// slots are the places of runs that execute (host.runs). The next free one goes to the waiting
// run whose key has the fewest, and among those to the one that asked first. Some are reserved
// for runs that the host starts by itself. More runs than the limit may execute for a while,
// because a run that waited for its owner goes on at once.
type slots struct {
	limit   int
	reserve int // of these, for runs that the host starts by itself

	mu    sync.Mutex // guards what follows, and held and away of every place
	used  int
	by    map[string]int // of used, by who started the run; "" is the host
	away  int            // runs that wait for their owner, or are paused
	queue []*place
}

// A place is one run's.
//
// Invariant: held counts once in used.
type place struct {
	slots *slots
	by    string // who started the run
	held  bool
	away  bool
	given chan struct{} // closed when it was given; nil when it does not wait
}

var _ run.Slots = (*place)(nil)

func newSlots(limit int) *slots {
	return &slots{limit: limit, reserve: limit / reserved, by: map[string]int{}}
}

func (s *slots) place(by string) *place { return &place{slots: s, by: by} }

// open reports whether there is a place for a run. The caller holds mu, as of
// take and free.
func (s *slots) open(p *place) bool {
	return s.used < s.limit && (p.by == "" || s.used-s.by[""] < s.limit-s.reserve)
}

func (s *slots) take(p *place) {
	p.held = true
	s.used++
	s.by[p.by]++
}

// next is who gets a place that is free, -1 for nobody.
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

// ask takes a place, or a turn in the queue.
func (p *place) ask() <-chan struct{} {
	s := p.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open(p) { // then nobody waits who could have it
		s.take(p)
		return nil
	}
	p.given = make(chan struct{})
	s.queue = append(s.queue, p)
	return p.given
}

// giveUp leaves the queue, or gives a place back that was given at the same moment.
func (p *place) giveUp() {
	s := p.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queue, p); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.free(p)
}

// free takes a place back and gives it to who waits.
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

// stand notes whether the run waits for its owner or is paused.
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
