package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/files"
	"github.com/sluicehost/sluice/host/destination/parquet"
	"github.com/sluicehost/sluice/host/destination/sqlite"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/store"
)

// A selectedStream is the source of a destination that is fed once.
type selectedStream struct {
	from  export.Source
	s     export.Selection
	after uint64
}

// Records implements destination.Source.
func (x selectedStream) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	if q.After == 0 {
		q.After = x.after
	}
	q.Deleted = x.s.Deleted
	return x.from.Records(ctx, q)
}

// wantedOf returns a selected stream as a destination is fed with it.
func wantedOf(s export.Selection, stream store.Stream) destination.Wanted {
	w := destination.Wanted{StreamID: destination.StreamID{Connection: s.Connection, Stream: stream},
		Mode: destination.Current, Last: ^uint64(0)}
	if s.Deleted {
		w.Mode = destination.CurrentDeleted
	}
	if s.Manifest != nil {
		w.Spec = s.Manifest.Stream(string(stream))
	}
	return w
}

// wanted is wantedOf for a database, which has files in a table.
func (f *recordFile) wanted(s export.Selection, stream store.Stream) destination.Wanted {
	w := wantedOf(s, stream)
	if f.files != nil {
		w.Open = f.files.opener(s.Connection)
	}
	return w
}

// writeParquet writes the one selected stream.
func (f *recordFile) writeParquet(ctx context.Context, s export.Selection) (err error) {
	if len(s.Streams) != 1 {
		return usagef("a Parquet file has one table, and %s has %d streams; choose one with --stream, or write DIR/ with --format parquet", s.Connection, len(s.Streams))
	}
	from := f.exporter()
	defer func() { from.Close() }()
	f.records, err = files.WriteFile(ctx, f.buffer, parquet.Kind.Format, func() destination.Source {
		from.Close()
		from = f.exporter()
		return selectedStream{f.files.wrap(from, s), s, s.Streams[0].After}
	}, wantedOf(s, s.Streams[0].Stream))
	return err
}

// writeSQLite writes a database with a table for each selected stream. It is not behind
// the buffer.
func (f *recordFile) writeSQLite(ctx context.Context, s export.Selection) (err error) {
	sink, err := sqlite.Open(ctx, f.file.Name(), destination.Owner{Host: "export", Destination: "export"},
		sqlite.Options{Volatile: true, Alone: true})
	if err != nil {
		return err
	}
	from := f.exporter()
	defer from.Close()
	for _, st := range s.Streams {
		if err = destination.Bring(ctx, selectedStream{from, s, st.After}, sink, f.wanted(s, st.Stream), nil,
			func(rows int) { f.records += int64(rows) }); err != nil {
			break
		}
	}
	if err := errors.Join(err, sink.Close()); err != nil {
		return err
	}
	written, err := os.Open(f.file.Name())
	if err != nil {
		return fmt.Errorf("read what was written: %w", err)
	}
	defer written.Close()
	_, err = io.Copy(f.sum, written)
	return err
}
