package dashboard

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/store"
)

// changesBefore returns how many versions a stream had at a time. Versions are ordered by time, so
// a binary search needs few reads. Of keys that changed since then only the newest version counts,
// since the store keeps no other. The result is at least low.
func changesBefore(ctx context.Context, from store.Records, connection store.ConnectionID, s store.StreamStats,
	at time.Time, low uint64) (uint64, error) {
	if s.UpdatedAt.Before(at) {
		return s.LastVersion, nil
	}
	high := s.LastVersion
	for low < high {
		mid := low + (high-low)/2
		p, err := from.Records(ctx,
			store.RecordQuery{Connection: connection, Stream: s.Stream, After: mid, Deleted: true, Limit: 1})
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

// changesSince returns how many versions a stream gained since a time.
func changesSince(ctx context.Context, from store.Records, connection store.ConnectionID, s store.StreamStats,
	at time.Time) (uint64, error) {
	before, err := changesBefore(ctx, from, connection, s, at, 0)
	return s.LastVersion - before, err
}

// changesByDay returns, for each of some days since a time, how many of its first most versions a
// stream gained on that day.
func changesByDay(ctx context.Context, from store.Records, connection store.ConnectionID, s store.StreamStats,
	since time.Time, days int, most uint64) ([]uint64, error) {
	out, before := make([]uint64, days), uint64(0)
	for i := range days + 1 {
		upTo, err := changesBefore(ctx, from, connection, s, since.AddDate(0, 0, i), before)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out[i-1] = min(upTo, most) - min(before, most)
		}
		before = upTo
	}
	return out, nil
}
