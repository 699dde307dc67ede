package schedule

import (
	"context"
	"sync"
	"time"
)

// A lifetime says whether a scheduler runs, and when it ends.
type lifetime struct {
	ctx      context.Context // of everything that goes on
	cancel   context.CancelFunc
	stopping chan struct{} // closed: nothing starts any more

	mu      sync.Mutex // guards what follows
	state   int        // fresh, running, stopped
	started time.Time
}

// Running reports whether due runs start.
func (lt *lifetime) Running() bool {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	return lt.state == running
}

// Quiesce stops it from starting anything, also retries that wait.
// What was started is still followed until Stop.
func (lt *lifetime) Quiesce() {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	if lt.state != stopped {
		close(lt.stopping)
	}
	lt.state = stopped
}

func (lt *lifetime) stopped() bool {
	select {
	case <-lt.stopping:
		return true
	default:
		return false
	}
}

func (lt *lifetime) startedAt() time.Time {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	return lt.started
}

// sleep reports whether the scheduler still starts runs after a while.
func (lt *lifetime) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !lt.stopped()
	case <-lt.stopping:
		return false
	case <-lt.ctx.Done():
		return false
	}
}

const (
	fresh = iota
	running
	stopped
)
