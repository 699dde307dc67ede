package browser

import (
	"sync"
	"time"
)

// defaultRate of actions, per minute.
const defaultRate = 120

// rateOf is the host's limit, or the manifest's if that is lower (B8).
func rateOf(host int, manifest int64) int {
	if manifest > 0 && manifest < int64(host) {
		return int(manifest)
	}
	return host
}

// A rate bounds the actions within any minute.
type rate struct {
	mu   sync.Mutex  // guards what follows
	last []time.Time // of the latest actions, a ring
	next int
}

func newRate(perMinute int) *rate { return &rate{last: make([]time.Time, perMinute)} }

// take counts an action, unless it is one too many.
func (r *rate) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if oldest := r.last[r.next]; !oldest.IsZero() && now.Sub(oldest) < time.Minute {
		return false
	}
	r.last[r.next] = now
	r.next = (r.next + 1) % len(r.last)
	return true
}
