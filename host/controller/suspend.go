package controller

import (
	"context"
	"time"
)

// How long a start waits for other runs to sleep, how long it waits for one of them, and how often the
// controller checks for memory.
const (
	suspendTimeout      = 5 * time.Second
	suspendWait         = 200 * time.Millisecond
	memoryCheckInterval = time.Second
)

// longestWaiting returns the run that has waited longest for its owner among those that can sleep, nil for none. The
// caller holds mu.
func (c *Controller) longestWaiting() (longest *entry) {
	var since time.Time
	for _, e := range c.active {
		if at := e.Run.WaitingSince(); !at.IsZero() && (longest == nil || at.Before(since)) {
			longest, since = e, at
		}
	}
	return longest
}

// suspend asks a run to sleep and waits briefly for that. The run may be answered first and stay.
func (c *Controller) suspend(ctx context.Context, e *entry) {
	e.Run.SuspendIfWaiting()
	late := time.NewTimer(suspendWait)
	defer late.Stop()
	select {
	case <-e.done:
	case <-late.C:
	case <-ctx.Done():
	}
}

// freeMemory puts runs that wait for their owner to sleep, one after the other, while memory is short.
func (c *Controller) freeMemory(ctx context.Context) {
	if c.options.MemoryShort == nil {
		return
	}
	ticker := time.NewTicker(memoryCheckInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		c.mu.Lock()
		e := c.longestWaiting()
		c.mu.Unlock()
		if e != nil && c.options.MemoryShort() {
			c.suspend(ctx, e)
			continue
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}
