package schedule

import (
	"context"
	"sync"
	"time"
)

// A lifetime is the running state of a scheduler.
type lifetime struct {
	ctx      context.Context // for everything that is running
	cancel   context.CancelFunc
	stopping chan struct{} // closed when nothing may start any more

	mu      sync.Mutex // guards what follows
	state   int        // fresh, running, stopped
	started time.Time
}

// Running reports whether due runs are started.
func (lt *lifetime) Running() bool {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	return lt.state == running
}

// Quiesce stops the scheduler from starting anything, including pending retries. Started runs are
// followed until Stop.
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

// sleep waits and reports whether the scheduler still starts runs.
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
