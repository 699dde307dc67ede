package store

import (
	"context"
	"slices"
	"time"
)

// Prunable lists runs whose timelines can be deleted, oldest first: those that ended before
// a time, except the latest keep runs of every connection and those already pruned. limit
// bounds the list; 0 means no bound. Runs of deleted connections count too. It reads all
// run records, a page at a time.
func Prunable(ctx context.Context, s Runs, keep int, before time.Time, limit int) ([]RunID, error) {
	seen := make(map[ConnectionID]int)
	var over []RunID
	for last := RunID(""); ; {
		runs, err := s.Runs(ctx, "", last, 1000)
		if err != nil {
			return nil, err
		}
		if len(runs) == 0 {
			break
		}
		for _, r := range runs {
			last = r.ID
			seen[r.ConnectionID]++
			if seen[r.ConnectionID] > keep && !r.Pruned && r.FinishedAt != nil && r.FinishedAt.Before(before) {
				over = append(over, r.ID)
			}
		}
	}
	slices.Reverse(over)
	if limit > 0 && len(over) > limit {
		over = over[:limit]
	}
	return over, nil
}
