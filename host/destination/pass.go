package destination

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// A Source is the part of a store that destinations read.
type Source interface {
	Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
}

// A Wanted is a stream that belongs in a destination.
type Wanted struct {
	StreamID
	Since   time.Time // when its connection was created
	Spec    abi.StreamSpec
	Mode    Mode
	Flatten bool
	// Open opens a content that a record of the connection refers to, or returns store.ErrNotFound. If it is nil, files
	// are left out.
	Open func(ctx context.Context, d store.Digest) (Content, error)
	Last uint64 // its newest version
}

// Maximum size of a batch in rows and in bytes of memory. There are two at a time: one being written and one being
// read.
const (
	batchRows  = 10_000
	batchBytes = 12 << 20
	pageRows   = 5000 // per read; if a page ends within a segment of the store, the next one reads the whole segment again
	valueBytes = 48   // size of a Value
)

// Bring brings one stream of a sink up to date. It calls done with the number of rows after each batch that the sink
// has taken.
func Bring(ctx context.Context, src Source, sink Sink, w Wanted, have *Holding, done func(rows int)) error {
	if have != nil && (!have.Since.Equal(w.Since) || have.Mark > w.Last || have.Mode != w.Mode ||
		have.Shape.Flatten != w.Flatten) {
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
	if have != nil && to.Mark >= w.Last {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	table, first := to.Table, have == nil
	_, verbatim := sink.(Verbatim)
	keeper, files := filer(sink, w)
	for next := readAhead(ctx, src, w, have, to, verbatim, files); next != nil; {
		r := <-next
		if r.err != nil {
			return fmt.Errorf("read %s: %w", w.StreamID, r.err)
		}
		next = nil
		if r.batch.From != nil {
			r.batch.From.Table, r.batch.To.Table = table, table
		}
		// Versions up to w.Last were there before the first page was read: each key is at most once among them.
		r.batch.New = first && (len(r.batch.Rows) == 0 || r.batch.Rows[len(r.batch.Rows)-1].Version <= w.Last)
		if kept := r.batch.To; r.more && kept.Mark < w.Last {
			next = readAhead(ctx, src, w, &kept, kept, verbatim, files)
		}
		err := keepFiles(ctx, keeper, r.batch)
		if err == nil {
			err = sink.Apply(ctx, r.batch)
		}
		if err != nil {
			cancel()
			if next != nil {
				<-next
			}
			return fmt.Errorf("write %s: %w", w.StreamID, err)
		}
		done(len(r.batch.Rows))
		table = r.batch.To.Table // chosen by the sink
	}
	return nil
}

// filer returns a Filer for a stream and a sink that keeps files, or nil if no files are wanted.
func filer(sink Sink, w Wanted) (FileKeeper, *Filer) {
	fields := w.Spec.FileFields()
	keeper, ok := sink.(FileKeeper)
	if !ok || w.Open == nil || len(fields) == 0 {
		return nil, nil
	}
	return keeper, &Filer{Fields: fields, Open: w.Open, Path: keeper.FilePath}
}

func keepFiles(ctx context.Context, keeper FileKeeper, b *Batch) error {
	for files := range slices.Chunk(b.Files, FilesAtOnce) {
		if err := keeper.KeepFiles(ctx, files); err != nil {
			return err
		}
	}
	return nil
}

// A reading is the result of read.
type reading struct {
	batch *Batch
	more  bool
	err   error
}

// readAhead reads the next batch while the sink writes another.
func readAhead(ctx context.Context, src Source, w Wanted, have *Holding, to Holding, verbatim bool,
	files *Filer) <-chan reading {
	next := make(chan reading, 1)
	go func() {
		b, more, err := read(ctx, src, w, have, to, verbatim, files)
		next <- reading{b, more, err}
	}()
	return next
}

// read reads the next batch of a stream and reports whether there is more.
func read(ctx context.Context, src Source, w Wanted, have *Holding, to Holding, verbatim bool,
	files *Filer) (b *Batch, more bool, err error) {
	to.Shape = to.Shape.Clone()
	b = &Batch{ID: w.StreamID, From: have, To: to}
	for size := 0; len(b.Rows) < batchRows && size < batchBytes; {
		page, err := src.Records(ctx,
			store.RecordQuery{Connection: w.Connection, Stream: w.Stream, After: b.To.Mark, Deleted: true, Limit: pageRows})
		if err != nil {
			return nil, false, err
		}
		b.Rows = slices.Grow(b.Rows, len(page.Records))
		for _, r := range page.Records {
			row := Row{Key: r.Key, Version: r.Version, At: r.IngestedAt, Deleted: r.Deleted}
			switch {
			case verbatim:
				row.Data = r.Data
			case len(r.Data) > 0:
				if files != nil {
					var fresh []File
					r.Data, fresh = files.Of(r.Data)
					b.Files = append(b.Files, fresh...)
				}
				row.Values, row.Rest = b.To.Shape.Row(r.Data, make([]Value, 0, len(b.To.Shape.Columns)))
			}
			size += len(r.Data) + len(r.Key) + cap(row.Values)*valueBytes
			b.Rows = append(b.Rows, row)
		}
		b.To.Mark = max(b.To.Mark, page.After)
		if !page.More {
			b.To.Mark = max(b.To.Mark, page.Version) // skip versions that are superseded
			return b, false, nil
		}
	}
	return b, true, nil
}
