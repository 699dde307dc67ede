package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Shutdown ends the controller. It refuses new starts, waits for active runs for the grace period or until ctx
// ends, then stops the rest, which fail with controller_restarted, and returns when all are over. It does not
// wait for idle runs, since nobody can answer or resume them any more. Only the first call has an effect.
func (c *Controller) Shutdown(ctx context.Context) {
	if !c.beginShutdown() {
		return
	}
	grace := time.NewTimer(c.options.Grace)
	defer grace.Stop()
	look := time.NewTicker(idleCheckInterval)
	defer look.Stop()
	for waiting := true; waiting; {
		c.cancelWhere(idle)
		select {
		case <-look.C:
		case <-c.drained:
			waiting = false
		case <-grace.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
	}
	c.cancelWhere(func(run.Live) bool { return true })
	<-c.drained
	c.running.Wait()
	c.stop()
	c.background.Wait()
}

// idleCheckInterval is the interval at which Shutdown looks for idle runs.
const idleCheckInterval = 200 * time.Millisecond

// idle reports whether a shutdown need not wait for a run: it waits for its owner or for a slot, is paused, or
// continues under the next host.
func idle(l run.Live) bool { return l.Phase == "waiting" || l.Paused || l.Queued || l.Resumable }

// cancelWhere cancels the chosen runs. It may be repeated.
func (c *Controller) cancelWhere(chosen func(run.Live) bool) {
	for _, e := range c.entries() {
		if chosen(e.Run.Live()) {
			e.Run.Cancel(run.CancelRequest{Cause: run.CauseShutdown, Reason: "the host stops"})
		}
	}
}

// SetDrained sets whether active runs are suspended while they wait for their owner. It also applies when they come
// to wait later, but not to runs that are accepted later.
func (c *Controller) SetDrained(on bool) {
	for _, e := range c.entries() {
		e.Run.SetDrained(on)
	}
}

// beginShutdown begins the shutdown and reports whether it is the first call.
func (c *Controller) beginShutdown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	if c.closing = true; c.admitted == 0 {
		close(c.drained)
	}
	return true
}

func (c *Controller) entries() []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.active))
}

// live reports whether this process performs a run, or is about to.
func (c *Controller) live(id store.RunID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active[id] != nil
}

// reconcile calls Options.Reconcile until ctx ends.
func (c *Controller) reconcile(ctx context.Context) {
	if c.options.Reconcile == nil {
		return
	}
	ticker := time.NewTicker(c.options.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.endedWithoutResult:
		case <-ctx.Done():
			return
		}
		if err := c.options.Reconcile(ctx, c.live); err != nil && ctx.Err() == nil {
			c.options.Log.Error("runs_not_reconciled", "error", err)
		}
	}
}
