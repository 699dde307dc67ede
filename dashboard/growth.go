package dashboard

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/store"
)

// changesBefore is how many versions a stream had at a time: versions are in the order
// of time, so a few of them tell, however many there are. Of keys that changed since only the
// newest version is looked at, as the store keeps no other.
func changesBefore(ctx context.Context, from store.Records, connection store.ConnectionID, s store.StreamStats, at time.Time) (uint64, error) {
	low, high := uint64(0), s.LastVersion
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
	before, err := changesBefore(ctx, from, connection, s, at)
	return s.LastVersion - before, err
}
