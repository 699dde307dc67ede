package app

import (
	"sync"

	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// activeRuns are the runs that this host performs, by connection.
type activeRuns struct {
	cancelSuspended func(store.ConnectionID, run.CancelRequest) // cancels a sleeping run; nil if runs cannot sleep

	mu   sync.Mutex // guards runs
	runs map[store.ConnectionID]*run.Run
}

func (a *activeRuns) add(id store.ConnectionID, r *run.Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs == nil {
		a.runs = map[store.ConnectionID]*run.Run{}
	}
	a.runs[id] = r
}

func (a *activeRuns) remove(id store.ConnectionID, r *run.Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs[id] == r {
		delete(a.runs, id)
	}
}

// cancel asks the connection's run to end, if it has one here or asleep.
func (a *activeRuns) cancel(id store.ConnectionID, c run.CancelRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.runs[id]; r != nil {
		r.Cancel(c)
	} else if a.cancelSuspended != nil {
		a.cancelSuspended(id, c)
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
