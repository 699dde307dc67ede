package app

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/store"
)

// The timelines of the newest runs of each connection are kept, and all timelines of the last days. A call of
// PruneTimelines deletes at most prunedAtOnce.
const (
	timelinesKept    = 500
	timelinesKeptFor = 90 * 24 * time.Hour
	prunedAtOnce     = 1000
)

// PruneTimelines deletes old timelines and the traces of their runs. The rows of the runs are kept.
func (as *artifacts) PruneTimelines(ctx context.Context) error {
	runs, err := store.Prunable(ctx, as.Store, timelinesKept, time.Now().Add(-timelinesKeptFor), prunedAtOnce)
	if err != nil {
		return fmt.Errorf("list timelines: %w", err)
	}
	for _, id := range runs {
		if err := as.Store.Prune(ctx, id); err != nil {
			return fmt.Errorf("delete timeline of %s: %w", id, err)
		}
		if err := as.removeTrace(id); err != nil {
			return err
		}
	}
	return nil
}
