package engine

import (
	"context"
	"sync"
	"time"
)

// A clock measures the time that counts: it stands still while the run is
// paused or waits for its owner. Its methods may be called from any goroutine.
type clock struct {
	mu      sync.Mutex // guards all below
	start   time.Time
	depth   int           // pauses that are open
	since   time.Time     // of the outermost one
	stood   time.Duration // in pauses that are over
	resumed chan struct{} // closed when depth falls to 0; nil while it runs
	alarms  map[*alarm]struct{}
}

// An alarm goes off once, after a time that counts.
type alarm struct {
	timer *time.Timer
	left  time.Duration // when armed last
	armed time.Time
}

func newClock() *clock {
	return &clock{start: time.Now(), alarms: map[*alarm]struct{}{}}
}

// now is the time that counted since the clock was made.
func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now()
	if c.depth > 0 {
		at = c.since
	}
	return at.Sub(c.start) - c.stood
}

// pause stops it; each one needs its resume.
func (c *clock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.depth++; c.depth > 1 {
		return
	}
	c.since = time.Now()
	c.resumed = make(chan struct{})
	for a := range c.alarms {
		a.timer.Stop()
		a.left -= c.since.Sub(a.armed)
	}
}

// resume ends a pause. One without a pause does nothing.
func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.depth == 0 {
		return
	}
	if c.depth--; c.depth > 0 {
		return
	}
	now := time.Now()
	c.stood += now.Sub(c.since)
	close(c.resumed)
	c.resumed = nil
	for a := range c.alarms {
		a.armed = now
		a.timer.Reset(max(a.left, 0))
	}
}

// hold returns once the clock runs, or with the end of ctx.
func (c *clock) hold(ctx context.Context) error {
	for {
		c.mu.Lock()
		resumed := c.resumed
		c.mu.Unlock()
		if resumed == nil {
			return context.Cause(ctx)
		}
		select {
		case <-resumed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// after calls f in a goroutine of its own when d counted; stop takes it back.
func (c *clock) after(d time.Duration, f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{left: d, armed: time.Now()}
	drop := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		a.timer.Stop()
		delete(c.alarms, a)
	}
	a.timer = time.AfterFunc(d, func() {
		drop()
		f()
	})
	if c.depth > 0 {
		a.timer.Stop() // resume arms it, with all of d
	}
	c.alarms[a] = struct{}{}
	return drop
}

// within is a context that ends with errDeadline when d counted.
func (c *clock) within(ctx context.Context, d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := c.after(d, func() { cancel(errDeadline) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// sleep waits d, however the clock stands, unless ctx ends or the browser is lost.
func sleep(ctx context.Context, d time.Duration, lost <-chan struct{}) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return context.Cause(ctx)
	case <-lost:
		return errLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
