package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/store"
)

// PauseAll pauses every schedule of a restored store, which no scheduler may have open, and returns
// how many were not paused before.
func PauseAll(ctx context.Context, s store.Documents) (paused int, err error) {
	for after := ""; ; {
		docs, err := s.Documents(ctx, store.DocumentQuery{Kind: store.Schedules, After: after, Limit: 200})
		if err != nil {
			return paused, fmt.Errorf("list schedules: %w", err)
		}
		if len(docs) == 0 {
			return paused, nil
		}
		for _, stored := range docs {
			after = stored.ID
			d, err := decode(stored)
			if errors.Is(err, errUnreadable) || err == nil && !d.Definition.Enabled {
				continue // never due
			}
			if err != nil {
				return paused, err
			}
			d.Definition.Enabled = false
			d.Slot, d.DueAt = time.Time{}, time.Time{}
			d.Revision++
			if err := s.Write(ctx, d.write(store.ConnectionID(stored.ID))); err != nil {
				return paused, fmt.Errorf("pause schedule of %s: %w", stored.ID, err)
			}
			paused++
		}
	}
}
