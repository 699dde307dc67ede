package parquet

import (
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/files"
)

// Maximum size of a chunk in rows and in bytes of text.
const (
	chunkRows  = 512
	chunkBytes = 1 << 20
)

// A writer gathers rows by column while a goroutine writes earlier ones.
type writer struct {
	table   files.Table
	own     int // the table's own columns, which precede those of the shape
	out     *parquet.GenericWriter[any]
	columns []*parquet.ColumnWriter

	puts   []*destination.Row // not in chunk yet
	bytes  int                // of their texts
	chunk  *chunk             // being gathered
	full   chan *chunk
	free   chan *chunk
	failed chan error // receives the goroutine's result

	from    *reader // of the last copy
	convert []func(parquet.Value) parquet.Value
}

// A chunk holds rows by column.
type chunk struct {
	values [][]parquet.Value
	texts  []byte // bytes that values refer to
	rows   int
	bytes  int // of the texts, approximately
}

func (w *writer) start() {
	w.full, w.free, w.failed = make(chan *chunk, 1), make(chan *chunk, 2), make(chan error, 1)
	for range 2 {
		w.free <- &chunk{values: make([][]parquet.Value, len(w.columns))}
	}
	w.chunk = &chunk{values: make([][]parquet.Value, len(w.columns))}
	go func() { w.failed <- w.write() }()
}

// write writes chunks and ends row groups until full is closed.
func (w *writer) write() (err error) {
	rows, bytes := 0, 0
	for c := range w.full {
		if err == nil {
			err = w.writeChunk(c)
		}
		rows, bytes = rows+c.rows, bytes+c.bytes+8*c.rows*len(w.columns)
		if err == nil && (rows >= groupRows || bytes >= groupBytes) {
			rows, bytes = 0, 0
			err = w.out.Flush()
		}
		w.free <- c
	}
	return err
}

func (w *writer) writeChunk(c *chunk) error {
	for i, values := range c.values {
		if _, err := w.columns[i].WriteRowValues(values); err != nil {
			return err
		}
		clear(values)
		c.values[i] = values[:0]
	}
	c.rows, c.bytes, c.texts = 0, 0, c.texts[:0]
	return nil
}

// flush passes the gathered rows to the goroutine.
func (w *writer) flush() {
	w.gather()
	if w.chunk.rows > 0 {
		w.full <- w.chunk
		w.chunk = <-w.free
	}
}

// Close implements files.Writer.
func (w *writer) Close() error {
	w.flush()
	close(w.full)
	if err := <-w.failed; err != nil {
		return err
	}
	return w.out.Close()
}

// Put implements files.Writer.
func (w *writer) Put(r *destination.Row) error {
	w.puts = append(w.puts, r)
	w.bytes += len(r.Key) + len(r.Rest)
	for i := range r.Values {
		w.bytes += len(r.Values[i].Text)
	}
	if len(w.puts) == chunkRows || w.bytes > chunkBytes {
		w.flush()
	}
	return nil
}

// gather moves the rows of puts to the chunk, column by column.
func (w *writer) gather() {
	if len(w.puts) == 0 {
		return
	}
	for c := range w.columns {
		switch i := c - w.own; {
		case i < 0:
			w.ownColumn(c)
		case i < len(w.table.Shape.Columns):
			w.shapeColumn(c, i, w.table.Shape.Columns[i].Type)
		default:
			w.restColumn(c)
		}
	}
	w.chunk.rows, w.chunk.bytes = w.chunk.rows+len(w.puts), w.chunk.bytes+w.bytes
	clear(w.puts)
	w.puts, w.bytes = w.puts[:0], 0
}

// ownColumn gathers a column of the table's own.
func (w *writer) ownColumn(c int) {
	for _, r := range w.puts {
		v := parquet.NullValue()
		switch {
		case c == 0:
			v = w.text(r.Key)
		case c == 1:
			v = parquet.Int64Value(int64(r.Version)) // #nosec G115 -- versions count changes
		case c == 2, c == 3 && w.table.Mode == destination.History:
			v = parquet.Int64Value(r.At.UnixMicro())
		case c == 3 && r.Deleted:
			v = parquet.Int64Value(r.At.UnixMicro()).Level(0, 1, c)
		}
		w.add(c, v)
	}
}

// shapeColumn gathers column i of the shape.
func (w *writer) shapeColumn(c, i int, t destination.Type) {
	null, values := parquet.NullValue(), w.chunk.values[c]
	for _, r := range w.puts {
		if i >= len(r.Values) || r.Values[i].Type == "" {
			values = append(values, null)
			continue
		}
		values = append(values, w.valueOf(&r.Values[i], t).Level(0, 1, c))
	}
	w.chunk.values[c] = values
}

func (w *writer) restColumn(c int) {
	for _, r := range w.puts {
		if r.Rest == "" {
			w.add(c, parquet.NullValue())
			continue
		}
		w.add(c, w.text(r.Rest).Level(0, 1, c))
	}
}

func (w *writer) add(c int, v parquet.Value) { w.chunk.values[c] = append(w.chunk.values[c], v) }

// text returns a text that is valid as long as its chunk.
func (w *writer) text(s string) parquet.Value {
	begin := len(w.chunk.texts)
	w.chunk.texts = append(w.chunk.texts, s...)
	return parquet.ByteArrayValue(w.chunk.texts[begin:])
}

// valueOf returns a value for a column of type t.
func (w *writer) valueOf(v *destination.Value, t destination.Type) parquet.Value {
	switch t {
	case destination.Boolean:
		return parquet.BooleanValue(v.Integer != 0)
	case destination.Integer:
		return parquet.Int64Value(v.Integer)
	case destination.Number:
		return parquet.DoubleValue(v.Number)
	case destination.Time:
		return parquet.Int64Value(v.Integer)
	}
	return w.text(v.Text)
}

// Copy implements files.Writer.
func (w *writer) Copy(from files.Reader, change *destination.Row) error {
	r := from.(*reader)
	w.gather()
	if w.from != r {
		w.from, w.convert = r, conversions(r.table.Shape, w.table.Shape)
	}
	for c := range w.own {
		w.add(c, r.columns[c].values[r.at])
	}
	if change != nil {
		w.change(change)
	}
	had := len(r.table.Shape.Columns)
	for i := range w.table.Shape.Columns {
		c := w.own + i
		if i >= had {
			w.add(c, parquet.NullValue())
			continue
		}
		v := r.columns[c].values[r.at]
		if w.convert[i] != nil && !v.IsNull() {
			v = w.convert[i](v).Level(0, 1, c)
		}
		w.add(c, v)
	}
	last := len(w.columns) - 1
	v := r.columns[len(r.columns)-1].values[r.at]
	if !v.IsNull() {
		v = v.Level(0, 1, last)
	}
	w.add(last, v)
	w.chunk.rows++
	for _, values := range w.chunk.values {
		if v := values[len(values)-1]; v.Kind() == parquet.ByteArray {
			w.chunk.bytes += len(v.ByteArray())
		}
	}
	if w.chunk.rows >= chunkRows || w.chunk.bytes > chunkBytes {
		w.flush()
	}
	return nil
}

// change overwrites the table's own columns of the last row.
func (w *writer) change(r *destination.Row) {
	set := func(column int, v parquet.Value) {
		values := w.chunk.values[column]
		values[len(values)-1] = v
	}
	at := parquet.Int64Value(r.At.UnixMicro())
	if w.table.Mode == destination.History {
		set(4, at.Level(0, 1, 4))
		return
	}
	set(1, parquet.Int64Value(int64(r.Version))) // #nosec G115 -- versions count changes
	set(2, at)
	set(3, at.Level(0, 1, 3))
}

// conversions returns the functions that convert values of columns to those of wider ones, nil where they are the same.
func conversions(from, to *destination.Shape) []func(parquet.Value) parquet.Value {
	out := make([]func(parquet.Value) parquet.Value, len(from.Columns))
	for i, c := range from.Columns {
		if was, is := c.Type, to.Columns[i].Type; was != is {
			out[i] = conversion(was, is)
		}
	}
	return out
}

func text(s string) parquet.Value { return parquet.ByteArrayValue([]byte(s)) }

func conversion(from, to destination.Type) func(parquet.Value) parquet.Value {
	if to == destination.Number {
		return func(v parquet.Value) parquet.Value { return parquet.DoubleValue(float64(v.Int64())) }
	}
	switch from {
	case destination.Boolean:
		return func(v parquet.Value) parquet.Value { return text(strconv.FormatBool(v.Boolean())) }
	case destination.Integer:
		return func(v parquet.Value) parquet.Value { return text(strconv.FormatInt(v.Int64(), 10)) }
	case destination.Number:
		return func(v parquet.Value) parquet.Value { return text(strconv.FormatFloat(v.Double(), 'g', -1, 64)) }
	case destination.Time:
		return func(v parquet.Value) parquet.Value {
			return text(files.Stamp(time.UnixMicro(v.Int64())))
		}
	}
	return nil // texts and JSON are already bytes
}
