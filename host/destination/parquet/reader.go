package parquet

import (
	"errors"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/files"
)

// A reader reads either all columns, in step, or only those needed for the keys.
type reader struct {
	table   files.Table
	groups  []parquet.RowGroup // groups not begun yet
	left    int64              // rows of the current group not yet in columns
	columns []column           // empty for those that are not read
	read    []int              // indexes of the columns that are read
	at, n   int                // current row, and number of rows in columns
}

// A column holds values read from one column.
type column struct {
	pages  parquet.Pages
	page   parquet.ValueReader // nil if the next page must be read
	values []parquet.Value
}

func (format) Open(f *os.File, t files.Table, keys bool) (_ files.Reader, err error) {
	defer lost(&err)
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, fi.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
		parquet.ReadBufferSize(64<<10))
	if err != nil {
		return nil, errors.Join(files.ErrLost, err)
	}
	r := &reader{table: t, groups: file.RowGroups(), at: -1}
	n := len(t.Own()) + len(t.Shape.Columns) + 1
	if len(file.Root().Columns()) != n {
		return nil, files.ErrLost
	}
	r.columns = make([]column, n)
	for c := range n {
		if !keys || c == 0 || c == 4 && t.Mode == destination.History {
			r.read = append(r.read, c)
			r.columns[c].values = make([]parquet.Value, chunkRows)
		}
	}
	return r, nil
}

// lost converts a panic of the library over a damaged file to ErrLost.
func lost(err *error) {
	if v := recover(); v != nil {
		*err = files.ErrLost
	}
}

func (r *reader) Next() error {
	if r.at++; r.at < r.n {
		return nil
	}
	r.at = 0
	return r.fill()
}

// fill reads the next rows into the columns.
func (r *reader) fill() (err error) {
	defer lost(&err)
	for r.left == 0 {
		if len(r.groups) == 0 {
			r.n = 0
			return io.EOF
		}
		g := r.groups[0]
		r.groups, r.left = r.groups[1:], g.NumRows()
		chunks := g.ColumnChunks()
		for _, c := range r.read {
			if r.columns[c].pages != nil {
				_ = r.columns[c].pages.Close()
			}
			r.columns[c].pages, r.columns[c].page = chunks[c].Pages(), nil
		}
	}
	r.n = int(min(chunkRows, r.left))
	r.left -= int64(r.n)
	for _, c := range r.read {
		if err := r.columns[c].fill(r.n); err != nil {
			return errors.Join(files.ErrLost, err)
		}
	}
	return nil
}

// fill reads n values. It does not release pages to the library, because the writer may still need their bytes.
func (c *column) fill(n int) error {
	for have := 0; have < n; {
		if c.page == nil {
			page, err := c.pages.ReadPage()
			if err != nil {
				return err
			}
			c.page = page.Values()
		}
		got, err := c.page.ReadValues(c.values[have:n])
		have += got
		switch {
		case err == io.EOF || err == nil && got == 0:
			c.page = nil
		case err != nil:
			return err
		}
	}
	return nil
}

func (r *reader) Key() []byte     { return r.columns[0].values[r.at].ByteArray() }
func (r *reader) Version() uint64 { return r.columns[1].values[r.at].Uint64() }

func (r *reader) Live() bool {
	return r.table.Mode != destination.History || r.columns[4].values[r.at].IsNull()
}
