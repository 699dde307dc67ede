package files

import (
	"context"
	"errors"
	"io"

	"github.com/sluicehost/sluice/host/destination"
)

// ErrGrew: records came with fields that there were not when a file was begun.
var ErrGrew = errors.New("fields appeared while the file was written; write it once more")

// WriteFile writes what there is of a stream into one file, and returns how many rows.
// source begins to read from the start; it is called twice, for a file has to begin with
// its columns. ErrGrew.
func WriteFile(ctx context.Context, out io.Writer, f Format, source func() destination.Source, w destination.Wanted) (rows int64, err error) {
	w.Last = ^uint64(0)
	columns := &once{table: Table{Mode: w.Mode}}
	if err := destination.Bring(ctx, source(), columns, w, nil, func(int) {}); err != nil {
		return 0, err
	}
	s := &once{table: columns.table}
	if s.out, err = f.Create(out, s.table); err != nil {
		return 0, err
	}
	err = destination.Bring(ctx, source(), s, w, nil, func(int) {})
	return s.rows, errors.Join(err, s.out.Close())
}

// A once is a sink that has nothing, and keeps nothing but the shape of the records that
// it was given, or writes them into a file.
type once struct {
	table Table
	out   Writer // nil: into none
	rows  int64
}

func (s *once) Holdings(context.Context) (map[destination.StreamID]destination.Holding, error) {
	return nil, nil
}

func (s *once) Apply(_ context.Context, b *destination.Batch) error {
	if s.out == nil {
		s.table.Shape = b.To.Shape
		return nil
	}
	if !within(b.To.Shape, s.table.Shape) {
		return ErrGrew
	}
	for i := range b.Rows {
		if b.Rows[i].Deleted && s.table.Mode == destination.Current {
			continue
		}
		if err := s.out.Put(&b.Rows[i]); err != nil {
			return err
		}
		s.rows++
	}
	return nil
}

// within says that rows of a shape fit into a table of another, which has seen them before.
func within(part, whole *destination.Shape) bool {
	if len(part.Columns) > len(whole.Columns) {
		return false
	}
	for i, c := range part.Columns {
		w := whole.Columns[i]
		if c.Name != w.Name || c.Type != w.Type && c.Type != "" && w.Type != destination.Text && (c.Type != destination.Integer || w.Type != destination.Number) {
			return false
		}
	}
	return true
}

func (s *once) Clear(context.Context, destination.StreamID) error       { return nil }
func (s *once) Describe(context.Context, []destination.Described) error { return nil }
func (s *once) Close() error                                            { return nil }
