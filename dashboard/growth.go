package dashboard

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/store"
)

// changesBefore is how many versions a stream had at a time, from least to its newest one:
// versions are in the order of time, so a few of them tell, however many there are. Of keys
// that changed since only the newest version is looked at, as the store keeps no other.
func changesBefore(ctx context.Context, from store.Records, connection store.ConnectionID, s store.StreamStats, at time.Time, least uint64) (uint64, error) {
	low, high := least, s.LastVersion
	for low < high {
		mid := low + (high-low)/2
		p, err := from.Records(ctx, store.RecordQuery{Connection: connection, Stream: s.Stream, After: mid, Deleted: true, Limit: 1})
		if err != nil {
			return 0, err
		}
		if len(p.Records) == 0 || !p.Records[0].IngestedAt.Before(at) {
			high = mid
		} else {
			low = p.Records[0].Version
		}
	}
	return low, nil
}

// changesSince is how many versions a stream got since a time.
func changesSince(ctx context.Context, from store.Records, connection store.ConnectionID, s store.StreamStats, at time.Time) (uint64, error) {
	if s.UpdatedAt.Before(at) {
		return 0, nil
	}
	before, err := changesBefore(ctx, from, connection, s, at, 0)
	return s.LastVersion - before, err
}

// changesByDay are the versions of each of the last days, the oldest first.
func changesByDay(ctx context.Context, from store.Records, connection store.ConnectionID, s store.StreamStats, now time.Time, days int) ([]uint64, error) {
	out := make([]uint64, days)
	first := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-days)
	if s.UpdatedAt.Before(first) {
		return out, nil
	}
	before, err := changesBefore(ctx, from, connection, s, first, 0)
	for i := range out {
		if err != nil {
			return nil, err
		}
		var until uint64
		until, err = changesBefore(ctx, from, connection, s, first.AddDate(0, 0, i+1), before)
		out[i], before = until-before, until
	}
	return out, err
}
