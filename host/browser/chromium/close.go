package chromium

import (
	"context"
	"fmt"
	"time"
)

// gracefulLimit is how long a browser has to end by itself (B194).
const gracefulLimit = 3 * time.Second

// Close asks the browser to end, which keeps what was written to its profile a
// moment ago, and kills what is left after 3 s or when ctx ends (B194). It returns
// when the process was waited for and nothing runs under its uid or profile any
// more; an error says that something does (B178). Every call waits for the same end.
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
	go func() { _ = b.wire.quit(ctx) }() // its pipe may be full; killing it makes room
	select {
	case <-b.group.exited:
	case <-ctx.Done():
	}
	return b.clear()
}

// kill ends the browser without asking it, as after a start that failed.
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

// clear kills what runs, waits for all that was started here, and looks for strays.
func (b *Browser) clear() error {
	if !gone(b.group.reaped) {
		b.group.kill()
	}
	<-b.group.reaped
	_ = b.wire.Close()
	<-b.lost
	<-b.cdp.LostConnection // no event comes any more
	b.mu.Lock()
	tabs := b.tabs
	b.mu.Unlock()
	for _, t := range tabs {
		t.close()
	}
	b.stop()
	b.working.Wait()
	defer b.options.removeScratch()
	if left := strays(b.options.Profile, b.options.Home, b.options.UID); left > 0 {
		return fmt.Errorf("%d processes of the browser do not end", left)
	}
	return nil
}
