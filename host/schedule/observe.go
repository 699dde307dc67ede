package schedule

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/store"
)

// lookBack is how many runs of a connection are looked through for what a
// schedule has not seen: those that others started.
const lookBack = 100

// observe brings a document up to date with the runs of its connection, whoever
// started them: an interval counts from the last start, a success ends a
// streak. It writes nothing.
func (s *Scheduler) observe(ctx context.Context, id store.ConnectionID, d *document) error {
	runs, err := s.d.Store.Runs(ctx, id, "", lookBack)
	if err != nil {
		return fmt.Errorf("list runs of %s: %w", id, err)
	}
	runs = slices.DeleteFunc(runs, func(r store.Run) bool { return r.ID <= d.Seen })
	active := false
	for _, r := range slices.Backward(runs) { // oldest first
		if r.StartedAt.After(d.LastStarted) {
			d.LastStarted = r.StartedAt
		}
		if r.FinishedAt == nil || r.Status == "active" {
			active = true
			continue
		}
		d.finished(r)
		if !active {
			d.Seen = r.ID
		}
	}
	return nil
}

// finished takes up how a run of the connection went.
func (d *document) finished(r store.Run) {
	at := *r.FinishedAt
	if at.Before(d.LastFinished) {
		return
	}
	d.LastFinished, d.LastError = at, ""
	switch r.Status {
	case "succeeded":
		d.LastSuccessful = at
		if d.Streak.Count > 0 && !at.Before(d.Streak.At) {
			d.Streak = streak{}
		}
	case "failed":
		if res, err := resultOf(r); err == nil {
			d.LastError = res.reason()
		}
	}
}

// active is the run that holds a connection, "" for none.
func (s *Scheduler) active(ctx context.Context, id store.ConnectionID) (store.RunID, error) {
	leases, err := s.d.Store.Leases(ctx)
	if err != nil {
		return "", fmt.Errorf("list active runs: %w", err)
	}
	for _, l := range leases {
		if l.ConnectionID == id {
			return l.RunID, nil
		}
	}
	return "", nil
}
