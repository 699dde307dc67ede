package files

import (
	"context"
	"errors"
	"io"

	"github.com/sluicehost/sluice/host/destination"
)

// ErrGrew reports that records came with fields that did not exist when the file was begun.
var ErrGrew = errors.New("fields appeared while the file was written; write it once more")

// WriteFile writes a stream into one file and returns the number of rows. It calls source twice to read from the start,
// because a file has to begin with its columns. It may return ErrGrew.
func WriteFile(ctx context.Context, out io.Writer, f Format, source func() destination.Source,
	w destination.Wanted) (rows int64, err error) {
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

// A once is a sink that starts empty. It writes the rows into a file or, if there is none, keeps only their shape.
type once struct {
	table Table
	out   Writer // nil for none
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

// within reports whether rows of part fit into a table of whole.
func within(part, whole *destination.Shape) bool {
	if len(part.Columns) > len(whole.Columns) {
		return false
	}
	for i, c := range part.Columns {
		w := whole.Columns[i]
		if c.Name != w.Name || c.Type != w.Type && c.Type != "" && w.Type != destination.Text &&
			(c.Type != destination.Integer || w.Type != destination.Number) {
			return false
		}
	}
	return true
}

func (s *once) Clear(context.Context, destination.StreamID) error       { return nil }
func (s *once) Describe(context.Context, []destination.Described) error { return nil }
func (s *once) Close() error                                            { return nil }
