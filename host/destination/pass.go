package destination

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// A Source is what destinations read of a store.
type Source interface {
	Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
}

// A Wanted stream is to be in a destination.
type Wanted struct {
	StreamID
	Since   time.Time // when its connection was made
	Spec    abi.StreamSpec
	Mode    Mode
	Flatten bool
	Last    uint64 // its newest version
}

// How much one batch has at most, in rows and in bytes of their data.
const (
	batchRows  = 20_000
	batchBytes = 16 << 20
	pageRows   = 1000
)

// Bring brings one stream of a sink up to date, and tells done of the rows of each batch
// that the sink has taken.
func Bring(ctx context.Context, src Source, sink Sink, w Wanted, have *Holding, done func(rows int)) error {
	if have != nil && (!have.Since.Equal(w.Since) || have.Mark > w.Last || have.Mode != w.Mode || have.Shape.Flatten != w.Flatten) {
		if err := sink.Clear(ctx, w.StreamID); err != nil {
			return fmt.Errorf("begin %s anew: %w", w.StreamID, err)
		}
		have = nil
	}
	to := Holding{Mode: w.Mode, Since: w.Since}
	if have != nil {
		to = *have
	} else {
		to.Shape = ShapeOf(w.Spec, w.Flatten)
	}
	for have == nil || to.Mark < w.Last {
		b, more, err := read(ctx, src, w, have, to)
		if err != nil {
			return fmt.Errorf("read %s: %w", w.StreamID, err)
		}
		if err := sink.Apply(ctx, b); err != nil {
			return fmt.Errorf("write %s: %w", w.StreamID, err)
		}
		to = b.To
		done(len(b.Rows))
		if !more {
			return nil
		}
		kept := to
		have = &kept
	}
	return nil
}

// read makes the next batch of a stream. more says that there is another.
func read(ctx context.Context, src Source, w Wanted, have *Holding, to Holding) (b *Batch, more bool, err error) {
	to.Shape = to.Shape.Clone()
	b = &Batch{ID: w.StreamID, From: have, To: to}
	for size := 0; len(b.Rows) < batchRows && size < batchBytes; {
		page, err := src.Records(ctx, store.RecordQuery{Connection: w.Connection, Stream: w.Stream, After: b.To.Mark, Deleted: true, Limit: pageRows})
		if err != nil {
			return nil, false, err
		}
		for _, r := range page.Records {
			row := Row{Key: r.Key, Version: r.Version, At: r.IngestedAt, Deleted: r.Deleted}
			if len(r.Data) > 0 {
				row.Values, row.Rest = b.To.Shape.Row(r.Data, make([]Value, 0, len(b.To.Shape.Columns)))
			}
			size += len(r.Data) + len(r.Key)
			b.Rows = append(b.Rows, row)
		}
		b.To.Mark = max(b.To.Mark, page.After)
		if !page.More {
			b.To.Mark = max(b.To.Mark, page.Version) // versions whose keys have newer ones
			return b, false, nil
		}
	}
	return b, true, nil
}
