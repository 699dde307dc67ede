package app

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/store"
)

// What is kept of timelines: those of the newest runs of a connection, and all of the last
// days. A step deletes at most prunedAtOnce.
const (
	timelinesKept    = 500
	timelinesKeptFor = 90 * 24 * time.Hour
	prunedAtOnce     = 1000
)

// PruneTimelines deletes old timelines, and the files of their runs. Run rows stay.
func (as *artifacts) PruneTimelines(ctx context.Context) error {
	runs, err := store.Prunable(ctx, as.Store, timelinesKept, time.Now().Add(-timelinesKeptFor), prunedAtOnce)
	if err != nil {
		return fmt.Errorf("list timelines: %w", err)
	}
	for _, id := range runs {
		if err := as.Store.Prune(ctx, id); err != nil {
			return fmt.Errorf("delete timeline of %s: %w", id, err)
		}
		if err := browser.RemoveTrace(as.traces(), string(id)); err != nil {
			return fmt.Errorf("delete trace of %s: %w", id, err)
		}
	}
	return nil
}
