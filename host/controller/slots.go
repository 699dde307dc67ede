package controller

import (
	"context"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/host/run"
)

// slots are the places of runs that execute (host.runs). Who waits gets one in
// the order of asking. More than the limit may execute for a while: a run that
// returns from its owner goes on at once.
type slots struct {
	limit int

	mu    sync.Mutex // guards used and queue, and held of every place
	used  int
	queue []*place
}

// A place is one run's.
//
// Invariant: held counts once in used.
type place struct {
	slots *slots
	held  bool
	given chan struct{} // closed when it was given; nil when it does not wait
}

var _ run.Slots = (*place)(nil)

func (s *slots) place() *place { return &place{slots: s} }

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
	if s.used < s.limit { // then nobody waits
		p.held = true
		s.used++
		return nil
	}
	p.given = make(chan struct{})
	s.queue = append(s.queue, p)
	return p.given
}

// giveUp leaves the queue, or gives back what was given in the same moment.
func (p *place) giveUp() {
	s := p.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queue, p); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.free(p)
}

// free takes a place back and gives it to who waits. The caller holds mu.
func (s *slots) free(p *place) {
	if !p.held {
		return
	}
	p.held = false
	s.used--
	for s.used < s.limit && len(s.queue) > 0 {
		next := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		next.held = true
		s.used++
		close(next.given)
	}
}

// Leave implements run.Slots.
func (p *place) Leave() {
	p.slots.mu.Lock()
	defer p.slots.mu.Unlock()
	p.slots.free(p)
}

// Return implements run.Slots.
func (p *place) Return() {
	p.slots.mu.Lock()
	defer p.slots.mu.Unlock()
	if !p.held {
		p.held = true
		p.slots.used++
	}
}

// Release implements run.Slots. Doing it twice changes nothing, so that a run
// that came to no end is released as well.
func (p *place) Release() { p.Leave() }

func (s *slots) count() (used, queued int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, len(s.queue)
}
