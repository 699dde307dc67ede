package parquet

import (
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/files"
)

// chunk is how many rows go through columns at once.
const chunk = 512

// A writer gathers rows by column.
type writer struct {
	table   files.Table
	own     int // columns before those of the shape
	out     *parquet.Writer
	columns []*parquet.ColumnWriter
	values  [][]parquet.Value // by column
	rows    int               // in values
	bytes   int               // in values
	texts   []byte            // of values
	inGroup [2]int            // rows and bytes of the row group

	from    *reader // of the last copy
	convert []func(parquet.Value) parquet.Value
}

func (w *writer) Put(r *destination.Row) error {
	at := parquet.Int64Value(r.At.UnixMicro())
	if w.own > 0 {
		w.add(0, w.text(r.Key))
		w.add(1, parquet.Int64Value(int64(r.Version))) // #nosec G115 -- versions count changes
		w.add(2, at)
		switch {
		case w.table.Mode == destination.History:
			w.add(3, at)
			w.add(4, parquet.NullValue())
		case r.Deleted:
			w.add(3, at.Level(0, 1, 3))
		default:
			w.add(3, parquet.NullValue())
		}
	}
	for i := range w.table.Shape.Columns {
		c := w.own + i
		if i >= len(r.Values) || r.Values[i].Type == "" {
			w.add(c, parquet.NullValue())
			continue
		}
		w.add(c, w.valueOf(&r.Values[i], w.table.Shape.Columns[i].Type).Level(0, 1, c))
	}
	if w.table.Mode != "" {
		c := len(w.columns) - 1
		if r.Rest == "" {
			w.add(c, parquet.NullValue())
		} else {
			w.add(c, w.text(r.Rest).Level(0, 1, c))
		}
	}
	return w.row()
}

// text is a text until the next flush.
func (w *writer) text(s string) parquet.Value {
	begin := len(w.texts)
	w.texts = append(w.texts, s...)
	return parquet.ByteArrayValue(w.texts[begin:])
}

// valueOf is a value in a column of a type that it fits.
func (w *writer) valueOf(v *destination.Value, t destination.Type) parquet.Value {
	switch t {
	case destination.Boolean:
		return parquet.BooleanValue(v.Integer != 0)
	case destination.Integer:
		return parquet.Int64Value(v.Integer)
	case destination.Number:
		return parquet.DoubleValue(v.Number)
	case destination.Time:
		return parquet.Int64Value(v.Time.UnixMicro())
	}
	return w.text(v.Text)
}

func (w *writer) add(column int, v parquet.Value) {
	w.values[column] = append(w.values[column], v)
	if k := v.Kind(); k == parquet.ByteArray {
		w.bytes += len(v.ByteArray())
	}
}

// row ends a row.
func (w *writer) row() error {
	if w.rows++; w.rows < chunk && w.bytes < 1<<20 {
		return nil
	}
	return w.flush()
}

// flush writes the rows that were gathered.
func (w *writer) flush() error {
	for i, values := range w.values {
		if _, err := w.columns[i].WriteRowValues(values); err != nil {
			return err
		}
		clear(values)
		w.values[i] = values[:0]
	}
	w.inGroup[0] += w.rows
	w.inGroup[1] += w.bytes + 8*w.rows*len(w.columns)
	w.rows, w.bytes, w.texts = 0, 0, w.texts[:0]
	if w.inGroup[0] < groupRows && w.inGroup[1] < groupBytes {
		return nil
	}
	w.inGroup = [2]int{}
	return w.out.Flush()
}

// Close implements files.Writer.
func (w *writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.out.Close()
}

// Copy implements files.Writer.
func (w *writer) Copy(from files.Reader, change *destination.Row) error {
	r := from.(*reader)
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
	return w.row()
}

// change writes over the table's own columns of the row.
func (w *writer) change(r *destination.Row) {
	set := func(column int, v parquet.Value) {
		values := w.values[column]
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

// conversions are how values of columns become those of wider ones; nil where they are
// the same.
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
			return text(time.UnixMicro(v.Int64()).UTC().Format(time.RFC3339Nano))
		}
	}
	return nil // texts and JSON are bytes
}
