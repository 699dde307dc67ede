package engine

import (
	"context"
	"sync"
	"time"
)

// A clock measures the time that counts: it stands still while the run is paused or waits for its
// owner. It is safe for concurrent use.
type clock struct {
	mu      sync.Mutex // guards all below
	start   time.Time
	depth   int           // open pauses
	since   time.Time     // start of the outermost pause
	stood   time.Duration // total of finished pauses
	resumed chan struct{} // closed when depth falls to 0; nil while the clock runs
	alarms  map[*alarm]struct{}
}

// An alarm fires once, after a span of counted time.
type alarm struct {
	timer *time.Timer
	left  time.Duration // when last armed
	armed time.Time
}

func newClock() *clock {
	return &clock{start: time.Now(), alarms: map[*alarm]struct{}{}}
}

// now returns the counted time since the clock was made.
func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now()
	if c.depth > 0 {
		at = c.since
	}
	return at.Sub(c.start) - c.stood
}

// pause stops the clock. Each pause needs its own resume.
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

// resume ends a pause. Without a pause it does nothing.
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

// hold waits until the clock runs or ctx ends.
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

// after calls f in its own goroutine once d of counted time has passed; stop cancels that.
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
		a.timer.Stop() // resume arms it with all of d
	}
	c.alarms[a] = struct{}{}
	return drop
}

// within returns a context that ends with errDeadline after d of counted time.
func (c *clock) within(ctx context.Context, d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := c.after(d, func() { cancel(errDeadline) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// sleep waits for d of real time, unless ctx ends or the browser is lost.
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
