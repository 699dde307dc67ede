package destination

import (
	"context"
	"fmt"
	"slices"
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
	// Open opens a content that a record of the connection holds: store.ErrNotFound. nil: files
	// are not brought along.
	Open func(ctx context.Context, d store.Digest) (Content, error)
	Last uint64 // its newest version
}

// How much one batch has at most, in rows and in bytes of memory. Two are there at a time:
// one that is written, and one that is read meanwhile.
const (
	batchRows  = 10_000
	batchBytes = 12 << 20
	pageRows   = 5000 // at once: where a page ends within a segment of the store, the next one reads all of that again
	valueBytes = 72   // of a Value
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
	if have != nil && to.Mark >= w.Last {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	table := to.Table
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
		table = r.batch.To.Table // which the sink chose
	}
	return nil
}

// filer finds the files of a stream for a sink that keeps them; nil where none are wanted.
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

// A reading is a batch that was read. more says that there is another.
type reading struct {
	batch *Batch
	more  bool
	err   error
}

// readAhead reads the next batch of a stream while the sink writes another.
func readAhead(ctx context.Context, src Source, w Wanted, have *Holding, to Holding, verbatim bool, files *Filer) <-chan reading {
	next := make(chan reading, 1)
	go func() {
		b, more, err := read(ctx, src, w, have, to, verbatim, files)
		next <- reading{b, more, err}
	}()
	return next
}

// read makes the next batch of a stream. more says that there is another.
func read(ctx context.Context, src Source, w Wanted, have *Holding, to Holding, verbatim bool, files *Filer) (b *Batch, more bool, err error) {
	to.Shape = to.Shape.Clone()
	b = &Batch{ID: w.StreamID, From: have, To: to}
	for size := 0; len(b.Rows) < batchRows && size < batchBytes; {
		page, err := src.Records(ctx, store.RecordQuery{Connection: w.Connection, Stream: w.Stream, After: b.To.Mark, Deleted: true, Limit: pageRows})
		if err != nil {
			return nil, false, err
		}
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
			b.To.Mark = max(b.To.Mark, page.Version) // versions whose keys have newer ones
			return b, false, nil
		}
	}
	return b, true, nil
}
