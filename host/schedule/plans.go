package schedule

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/store"
)

// plans holds the due times that the loop waits for.
type plans struct {
	wake chan struct{} // capacity 1: something is due earlier

	mu      sync.Mutex // guards planned
	planned map[store.ConnectionID]*planned
}

// A planned schedule is what the loop knows of a schedule.
type planned struct {
	due    time.Time // zero: never
	firing bool      // its gates are running
}

// planDocument sets when a schedule is due.
func (ps *plans) planDocument(id store.ConnectionID, d document) {
	due := d.DueAt
	if !d.Definition.Enabled || d.Poisoned {
		due = time.Time{}
	}
	ps.planAt(id, due)
}

func (ps *plans) planAt(id store.ConnectionID, due time.Time) {
	ps.mu.Lock()
	p := ps.planned[id]
	if p == nil {
		p = &planned{}
		ps.planned[id] = p
	}
	earlier := !due.IsZero() && (p.due.IsZero() || due.Before(p.due))
	p.due = due
	ps.mu.Unlock()
	if earlier {
		ps.awake()
	}
}

func (ps *plans) drop(id store.ConnectionID) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.planned, id)
}

func (ps *plans) awake() {
	select {
	case ps.wake <- struct{}{}:
	default:
	}
}

// take marks due schedules as firing and returns them, with the time until the next one is due, at
// most longest.
func (ps *plans) take(now time.Time, longest time.Duration) (due []store.ConnectionID, wait time.Duration) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	wait = longest
	for id, p := range ps.planned {
		switch {
		case p.due.IsZero() || p.firing:
		case p.due.After(now):
			wait = min(wait, p.due.Sub(now))
		default:
			p.firing = true
			due = append(due, id)
		}
	}
	return due, wait
}

// fired records that a schedule was dispatched, so it may be due again.
func (ps *plans) fired(id store.ConnectionID) {
	ps.mu.Lock()
	if p := ps.planned[id]; p != nil {
		p.firing = false
	}
	ps.mu.Unlock()
	ps.awake()
}

// ids returns the planned schedules.
func (ps *plans) ids() []store.ConnectionID {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return slices.Collect(maps.Keys(ps.planned))
}
