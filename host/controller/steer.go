package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// ErrNotActive is returned for a run that is over or not performed by this process. Its row in the store tells
// its status.
var ErrNotActive = errors.New("the run is not active")

// cancelWait is how long a cancel waits for the end of a run, so that a run that stops at once is reported as
// cancelled and not as cancelling.
const cancelWait = 200 * time.Millisecond

func (c *Controller) entry(id store.RunID) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.active[id]; e != nil && e.accepted {
		return e
	}
	return nil
}

// Cancel asks a run to end. It returns cancelling while the guest is being stopped, cancelled, or the status of
// a run that had ended otherwise. It may be repeated. The error is a *run.Refusal: not_found, or unavailable for
// a run that nobody performs and that is about to be closed.
func (c *Controller) Cancel(ctx context.Context, id store.RunID, q run.CancelRequest) (status string, err error) {
	e := c.entry(id)
	if e == nil {
		rec, err := c.ended(ctx, id)
		return Status(rec), err
	}
	e.Run.Cancel(q)
	wait := time.NewTimer(cancelWait)
	defer wait.Stop()
	select {
	case <-e.done:
		rec, err := c.ended(ctx, id)
		return Status(rec), err
	case <-wait.C:
	case <-ctx.Done():
	}
	if rec, err := c.store.Run(ctx, id); err == nil && rec.Status != "active" { // it has ended but is not cleaned up yet
		return Status(rec), nil
	}
	return "cancelling", nil
}

// ended returns the row of a run that is not active here. The errors are those of Cancel.
func (c *Controller) ended(ctx context.Context, id store.RunID) (store.Run, error) {
	rec, err := c.store.Run(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return rec, &run.Refusal{Code: "not_found", Message: "there is no such run"}
	case err != nil:
		return rec, fmt.Errorf("load run %s: %w", id, err)
	case rec.Status == "active":
		return rec, &run.Refusal{Code: "unavailable",
			Message: "the run was cut off and is about to be closed; ask again in a moment"}
	}
	return rec, nil
}

// Pause asks a run to pause. The error is a *run.Refusal: not_found, unavailable, or conflict with
// details.runStatus.
func (c *Controller) Pause(ctx context.Context, id store.RunID, q run.PauseRequest) (time.Time, error) {
	e := c.entry(id)
	if e == nil {
		return time.Time{}, c.errNotActive(ctx, id)
	}
	return e.Run.Pause(q)
}

// Resume continues a paused run. The errors are those of Pause.
func (c *Controller) Resume(ctx context.Context, id store.RunID, q run.ResumeRequest) (time.Time, error) {
	e := c.entry(id)
	if e == nil {
		return time.Time{}, c.errNotActive(ctx, id)
	}
	return e.Run.Resume(q)
}

func (c *Controller) errNotActive(ctx context.Context, id store.RunID) error {
	rec, err := c.ended(ctx, id)
	if err != nil {
		return err
	}
	return &run.Refusal{Code: "conflict", Message: "the run has ended", Details: map[string]any{"runStatus": Status(rec)}}
}

// Live returns what a run is doing now. It reports false for a run that is not active here.
func (c *Controller) Live(id store.RunID) (run.Live, bool) {
	e := c.entry(id)
	if e == nil {
		return run.Live{}, false
	}
	return e.Run.Live(), true
}

// Wait waits for the end of a run and returns its result. The error is ErrNotActive for a run that is over
// already or ended without a result; the store has its status.
func (c *Controller) Wait(ctx context.Context, id store.RunID) (*run.Result, error) {
	e := c.entry(id)
	if e == nil {
		return nil, ErrNotActive
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if e.result == nil {
		return nil, ErrNotActive
	}
	return e.result, nil
}

// Status returns the API's name for the status of an ended run, "" for an active one.
func Status(r store.Run) string {
	if s := timeline.RowStatus(r); s.Terminal() {
		return string(s)
	}
	return ""
}
