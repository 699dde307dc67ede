package files

import (
	"context"
	"strconv"
	"time"

	"github.com/sluicehost/sluice/host/destination"
)

// streamsShape has the columns of the table of streams.
var streamsShape = &destination.Shape{Columns: []destination.Column{
	{Name: "connection", Type: destination.Text}, {Name: "stream", Type: destination.Text},
	{Name: "connector", Type: destination.Text}, {Name: "version", Type: destination.Text},
	{Name: "table_name", Type: destination.Text}, {Name: "records", Type: destination.Integer},
	{Name: "deleted", Type: destination.Integer}, {Name: "mark", Type: destination.Integer},
	{Name: "last_run", Type: destination.Text}, {Name: "ended_at", Type: destination.Time},
	{Name: "left_out", Type: destination.Boolean}, {Name: "synced_at", Type: destination.Time},
}}

// Describe implements destination.Sink.
func (s *Sink) Describe(ctx context.Context, streams []destination.Described) error {
	return s.step(ctx, func() error {
		next := s.m.clone()
		if next.Streams == nil {
			if err := s.folder(next, destination.StreamsTable); err != nil {
				return err
			}
		}
		w := &rewriting{Sink: s, number: next.Next, perPart: maxRows}
		w.batch = &destination.Batch{From: &destination.Holding{},
			To: destination.Holding{Table: destination.StreamsTable, Shape: streamsShape}}
		err := w.begin()
		for _, d := range streams {
			if err == nil {
				w.out.part.Rows++
				err = w.out.Put(describe(d))
			}
		}
		if err == nil {
			err = w.end()
		}
		if err == nil {
			next.Streams, next.Next = w.fresh, w.number
			err = s.commit(ctx, next, w)
		}
		if err != nil && s.m != next {
			w.discard()
		}
		return err
	})
}

func describe(d destination.Described) *destination.Row {
	text := func(s string) destination.Value { return destination.Value{Type: destination.Text, Text: s} }
	count := func(n uint64) destination.Value {
		return destination.Value{Type: destination.Integer, Integer: int64(n), Text: strconv.FormatUint(n, 10)} // #nosec G115 -- they count what is on a disk
	}
	instant := func(t time.Time) destination.Value {
		if t.IsZero() {
			return destination.Value{}
		}
		return destination.Value{Type: destination.Time, Integer: t.UnixMicro(), Text: Stamp(t)}
	}
	leftOut := destination.Value{Type: destination.Boolean, Text: strconv.FormatBool(d.Partial)}
	if d.Partial {
		leftOut.Integer = 1
	}
	return &destination.Row{Values: []destination.Value{text(string(d.Connection)), text(string(d.Stream)),
		text(d.Connector), text(d.Version),
		text(d.Table), count(d.Records), count(d.Deleted), count(d.Mark), text(d.LastRun), instant(d.EndedAt), leftOut,
		instant(d.SyncedAt)}}
}
