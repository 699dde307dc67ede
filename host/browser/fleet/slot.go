package fleet

import (
	"context"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/host/browser/engine"
)

// slots bounds the concurrent surfaces. Waiters are served in order, runs started by an owner
// before scheduled ones.
type slots struct {
	mu      sync.Mutex // guards what follows
	free    int
	owner   []*waiter
	planned []*waiter
}

type waiter struct{ turn chan struct{} }

var errCapacity = &engine.Refusal{Code: "browser_capacity", Verb: engine.Open,
	Message: "every browser of this host is in use; try again later"}

// take waits for a slot until ctx ends and then refuses with browser_capacity. waiting is called
// once before it waits.
func (s *slots) take(ctx context.Context, scheduled bool, waiting func()) error {
	s.mu.Lock()
	if s.free > 0 { // nobody waits, or they would have it
		s.free--
		s.mu.Unlock()
		return nil
	}
	w := &waiter{make(chan struct{})}
	queue := s.queue(scheduled)
	*queue = append(*queue, w)
	s.mu.Unlock()
	waiting()
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	if !s.leave(w, scheduled) {
		s.give() // the slot was granted at the same moment
	}
	return errCapacity
}

func (s *slots) queue(scheduled bool) *[]*waiter {
	if scheduled {
		return &s.planned
	}
	return &s.owner
}

// leave removes a waiter from its queue. It reports false if it was served already.
func (s *slots) leave(w *waiter, scheduled bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queue(scheduled)
	waiting := len(*queue)
	*queue = slices.DeleteFunc(*queue, func(other *waiter) bool { return other == w })
	return len(*queue) < waiting
}

// give passes a slot to the next waiter.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range []*[]*waiter{&s.owner, &s.planned} {
		if len(*queue) > 0 {
			w := (*queue)[0]
			*queue = (*queue)[1:]
			close(w.turn)
			return
		}
	}
	s.free++
}
