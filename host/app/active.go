package app

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// activeRuns are the runs that this host performs, by connection.
type activeRuns struct {
	cancelSuspended func(store.ConnectionID, run.CancelRequest) // cancels a sleeping run; nil if runs cannot sleep
	suspended       func() map[store.ConnectionID]uint64        // connections of sleeping runs, and their Withdrawals before

	mu   sync.Mutex // guards runs
	runs map[store.ConnectionID]activeRun
}

// An activeRun is a run and the Withdrawals of its connection when it was planned.
type activeRun struct {
	*run.Run
	withdrawals uint64
}

func (a *activeRuns) add(planned store.Connection, r *run.Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs == nil {
		a.runs = map[store.ConnectionID]activeRun{}
	}
	a.runs[planned.ID] = activeRun{r, planned.Withdrawals}
}

func (a *activeRuns) remove(id store.ConnectionID, r *run.Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs[id].Run == r {
		delete(a.runs, id)
	}
}

// cancel asks the connection's run to end, if it has one here or asleep.
func (a *activeRuns) cancel(id store.ConnectionID, c run.CancelRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r, ok := a.runs[id]; ok {
		r.Cancel(c)
	} else if a.cancelSuspended != nil {
		a.cancelSuspended(id, c)
	}
}

// cancelWithdrawn cancels the runs from whose connections another host has withdrawn something, of those that sleep
// only if asleep is true.
func (a *activeRuns) cancelWithdrawn(ctx context.Context, st store.Connections, asleep bool) error {
	all := map[store.ConnectionID]uint64{}
	if asleep && a.suspended != nil {
		all = a.suspended()
	}
	a.mu.Lock()
	for id, r := range a.runs {
		all[id] = r.withdrawals
	}
	a.mu.Unlock()
	var failed error
	for id, before := range all {
		switch c, err := st.Connection(ctx, id); {
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("look at connection %s: %w", id, err))
		case c.Withdrawals != before:
			a.cancelPlanned(id, before)
		}
	}
	return failed
}

// cancelPlanned cancels the run of a connection that was planned before something was withdrawn, and no later one that
// took its place meanwhile.
func (a *activeRuns) cancelPlanned(id store.ConnectionID, before uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r, ok := a.runs[id]; !ok && a.cancelSuspended != nil {
		a.cancelSuspended(id, revoked)
	} else if ok && r.withdrawals == before {
		r.Cancel(revoked)
	}
}

// has reports whether this host performs a run.
func (a *activeRuns) has(id store.RunID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.runs {
		if r.ID == id {
			return true
		}
	}
	return false
}
