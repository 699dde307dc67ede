package dashboard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// grownOver is the period for which pages show growth, and maxStreams bounds the streams that they
// read for it.
const (
	grownOver  = 7 * 24 * time.Hour
	maxStreams = 500
)

// dataUI serves the page of all collected data.
type dataUI struct {
	*frame
	connections host.Connections
	stored      store.Records
	files       host.Files
}

func (u *dataUI) routes() []web.Route {
	return renewed(u.frame, "/ui/data", content{Title: "Data", Nav: "data", Live: "/ui/live/data"}, u.lookData, "collected")
}

// dataBody lists all connections with their streams and the largest streams.
type dataBody struct {
	Connections []dataConnection
	Records     uint64
	Bytes       uint64
	Grown       uint64
	Largest     []dataStream // by size
	More        int          // streams not shown
}

type dataConnection struct {
	host.Connection
	Streams []dataStream
	Files   bool // its records contain files
}

// A dataStream is a stream with its recent growth and its share of the storage.
type dataStream struct {
	store.StreamStats
	Connection string
	Grown      uint64
	Tone       string
	Share      float64 // of the largest, in percent
}

// largestStreams bounds the list of largest streams.
const largestStreams = 12

func (u *dataUI) lookData(ctx context.Context) (b dataBody, err error) {
	all, err := u.connections.Connections(ctx)
	if err != nil {
		return b, err
	}
	slices.SortFunc(all, byName)
	since, looked := u.now().Add(-grownOver), 0
	for _, c := range all {
		x := dataConnection{Connection: c}
		id := store.ConnectionID(c.ConnectionID)
		stats, err := u.stored.Streams(ctx, id)
		if err != nil {
			return b, err
		}
		for _, s := range stats {
			if looked++; looked > maxStreams {
				b.More++
				continue
			}
			grown, err := changesSince(ctx, u.stored, id, s, since)
			if err != nil {
				return b, err
			}
			b.Records, b.Bytes, b.Grown = b.Records+s.Live, b.Bytes+s.Bytes, b.Grown+grown
			x.Streams = append(x.Streams, dataStream{s, c.ConnectionID, grown, freshness(u.now(), s.UpdatedAt), 0})
		}
		held, err := u.files.Files(ctx, store.FileQuery{Connection: id, Limit: 1})
		if err != nil && !errors.Is(err, store.ErrNotFound) { // it may be deleted meanwhile
			return b, err
		}
		x.Files = len(held.Files) > 0
		b.Connections = append(b.Connections, x)
		b.Largest = append(b.Largest, x.Streams...)
	}
	b.storage()
	return b, nil
}

// storage sorts and truncates the largest streams.
func (b *dataBody) storage() {
	slices.SortStableFunc(b.Largest, func(x, y dataStream) int { return cmp.Compare(y.Bytes, x.Bytes) })
	b.Largest = b.Largest[:min(len(b.Largest), largestStreams)]
	for i := range b.Largest {
		b.Largest[i].Share = round(float64(b.Largest[i].Bytes) * 100 / float64(max(b.Largest[0].Bytes, 1)))
	}
}
