package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Accept makes the run row and the lease durable, before there is a guest, and
// returns the row. with is called with the row, and what it returns is
// written in the same commit; nil for nothing. The error is a *Refusal when the
// connection is being collected or START is too large: then nothing was
// recorded. Whoever accepts a run calls Do soon, which renews the lease and ends
// the run whatever happens.
func (r *Run) Accept(ctx context.Context, with func(store.Run) []store.Write) (store.Run, error) {
	if err := r.r.accept(ctx, with); err != nil {
		return store.Run{}, err
	}
	return r.r.rec, nil
}

func (r *run) accept(ctx context.Context, with func(store.Run) []store.Write) error {
	start, err := r.plan.start(r.id)
	if err != nil {
		return asRefusal(err)
	}
	r.calls.begin(start)
	if err := r.acquire(ctx, with); err != nil {
		return err
	}
	r.clocks.start(time.Now())
	r.accepted = true
	return nil
}

// acquire inserts the run and its lease.
func (r *run) acquire(ctx context.Context, with func(store.Run) []store.Write) error {
	var writes []store.Write
	if with != nil {
		writes = with(r.rec)
	}
	held, err := r.deps.Store.Acquire(ctx, r.rec, r.deps.HostID, r.deps.BootEpoch, r.deps.LeaseTTL, writes...)
	var active *store.ActiveError
	var conflict *store.ConflictError
	switch {
	case err == nil:
		r.lease.took(held)
		return nil
	case errors.As(err, &active):
		return refuse("run_already_active", "connection %s is being collected by run %s", r.plan.Connection.ID, active.RunID).
			with("activeRunId", active.RunID)
	case errors.Is(err, store.ErrNoSpace):
		return refuse("store_no_space", "%v; free some disk space and start again", err)
	case errors.As(err, &conflict):
		return err // of what the caller writes
	}
	return asRefusal(fmt.Errorf("start run: %w", err))
}
