package chromium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser/page"
)

// ErrExited is the page.ErrLost of a process that ended, rather than of a broken connection.
var ErrExited = fmt.Errorf("the browser's process ended: %w", page.ErrLost)

// exitGrace is how long after its pipes closed a process may take to end for this to count as its
// exit.
const exitGrace = 100 * time.Millisecond

// Product returns the browser's name and major version.
func (b *Browser) Product() (name string, major int) { return b.product, b.major }

// Agent returns the browser's user agent.
func (b *Browser) Agent() string { return b.agent }

// Lost is closed when the process or the connection to it is gone.
func (b *Browser) Lost() <-chan struct{} { return b.lost }

// Health receives a value when Fault may have changed.
func (b *Browser) Health() <-chan struct{} { return b.health }

// Fault returns the current state: nil, page.ErrLost or page.ErrGone.
func (b *Browser) Fault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.cause != nil:
		return b.cause
	case b.fault != nil:
		return b.fault
	case b.active == nil && b.opened > 0:
		return fmt.Errorf("%w: no page is open", page.ErrGone)
	}
	return nil
}

// watch waits for the end of the process or the connection, whichever is first, and ends the other.
func (b *Browser) watch() {
	defer b.working.Done()
	cause := ErrExited
	select {
	case <-b.group.exited:
	case <-b.cdp.LostConnection:
		cause = fmt.Errorf("the connection ended: %w", page.ErrLost)
		select { // a process that ends closes its pipes first
		case <-b.group.exited:
			cause = ErrExited
		case <-time.After(exitGrace):
		}
	}
	b.mu.Lock()
	b.cause = cause
	tabs := b.tabs
	ending := b.ending
	b.mu.Unlock()
	close(b.lost)
	b.poke()
	for _, t := range tabs {
		t.ended(cause)
	}
	if !ending { // otherwise Close waits for the process to end by itself
		b.group.kill()
		<-b.group.silent
		b.log.Warn("a browser ended by itself", "cause", cause, "state", b.group.state, "said", b.group.output.lastLine())
	}
	_ = b.wire.Close()
}

func (b *Browser) poke() { signal(b.health) }

// signal sends on a channel of capacity 1 without blocking.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func gone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// why translates the error of a browser command to those of package page.
func (b *Browser) why(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case gone(b.lost) || gone(b.cdp.LostConnection):
		if fault := b.Fault(); errors.Is(fault, page.ErrLost) {
			return fault
		}
		return fmt.Errorf("%w: %w", page.ErrLost, err)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", page.ErrHung, ctx.Err())
	case errors.Is(err, chromedp.ErrTargetDetached):
		return fmt.Errorf("%w: %w", page.ErrGone, err)
	}
	return err
}

// gracefulLimit is how long a browser may take to end by itself.
const gracefulLimit = 3 * time.Second

// Close asks the browser to end, so that it saves its profile, and kills what is left after 3 s or
// when ctx ends. It returns once the process was waited for and nothing runs under its uid or
// profile; otherwise it returns an error. All calls wait for the same end.
func (b *Browser) Close(ctx context.Context) error {
	b.closing.Do(func() {
		defer close(b.closed)
		b.failed = b.end(ctx)
	})
	<-b.closed
	return b.failed
}

func (b *Browser) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, gracefulLimit)
	defer cancel()
	b.mu.Lock()
	b.ending = true
	b.mu.Unlock()
	go func() { _ = b.wire.quit(ctx) }() // its pipe may be full; killing it unblocks the write
	select {
	case <-b.group.exited:
	case <-ctx.Done():
	}
	return b.clear()
}

// kill ends the browser without asking it, as after a failed start.
func (b *Browser) kill() {
	b.closing.Do(func() {
		defer close(b.closed)
		b.mu.Lock()
		b.ending = true
		b.mu.Unlock()
		b.failed = b.clear()
	})
	<-b.closed
}

// clear kills the process, waits for everything that was started here, and kills processes that it
// left behind.
func (b *Browser) clear() error {
	if !gone(b.group.reaped) {
		b.group.kill()
	}
	<-b.group.reaped
	_ = b.wire.Close()
	<-b.lost
	<-b.cdp.LostConnection // no more events arrive
	b.mu.Lock()
	tabs := b.tabs
	b.mu.Unlock()
	for _, t := range tabs {
		t.close()
	}
	b.stop()
	b.working.Wait()
	defer b.options.removeScratch()
	if left := endLeftProcesses(b.options.Profile, b.options.Home, b.options.UID); left > 0 {
		return fmt.Errorf("%d processes of the browser do not end", left)
	}
	return nil
}
