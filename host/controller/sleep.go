package controller

import (
	"context"
	"time"
)

// How long a start waits for other runs to sleep, how long it waits for one of them, and how often the
// controller checks for memory.
const (
	sleepsWithin  = 5 * time.Second
	lookForPlace  = 200 * time.Millisecond
	lookForMemory = time.Second
)

// longest returns the run that has waited longest for its owner among those that can sleep, nil for none. The
// caller holds mu.
func (c *Controller) longest() (longest *entry) {
	var since time.Time
	for _, e := range c.active {
		if at := e.Run.Waits(); !at.IsZero() && (longest == nil || at.Before(since)) {
			longest, since = e, at
		}
	}
	return longest
}

// sleep asks a run to sleep and waits briefly for that. The run may be answered first and stay.
func (c *Controller) sleep(ctx context.Context, e *entry) {
	e.Run.Sleep()
	late := time.NewTimer(lookForPlace)
	defer late.Stop()
	select {
	case <-e.over:
	case <-late.C:
	case <-ctx.Done():
	}
}

// freeMemory puts runs that wait for their owner to sleep, one after the other, while memory is short.
func (c *Controller) freeMemory(ctx context.Context) {
	if c.options.MemoryShort == nil {
		return
	}
	ticker := time.NewTicker(lookForMemory)
	defer ticker.Stop()
	for ctx.Err() == nil {
		c.mu.Lock()
		e := c.longest()
		c.mu.Unlock()
		if e != nil && c.options.MemoryShort() {
			c.sleep(ctx, e)
			continue
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}
