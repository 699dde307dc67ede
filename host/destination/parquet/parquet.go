// Package parquet keeps a directory of Parquet files up to date. All files of a table have the same schema. When the
// shape changes, they are rewritten.
package parquet

import (
	"fmt"
	"io"
	"reflect"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/files"
)

// Kind is the kind of parquet:DIR.
var Kind = files.Kind{Format: format{}}

type format struct{}

func (format) Name() string          { return "parquet" }
func (format) Key(key string) string { return key }

// Fits implements files.Format.
func (format) Fits(from, to *destination.Shape) bool {
	if len(from.Columns) != len(to.Columns) {
		return false
	}
	for i, c := range from.Columns {
		if c.Type != to.Columns[i].Type {
			return false
		}
	}
	return true
}

// A codec compresses pages with a window of the size of a few pages. The library's codec has one of 4 MiB, for which
// each encoder keeps 8 MiB.
type codec struct {
	parquetzstd.Codec // decompresses
	encoder           *zstd.Encoder
}

func newCodec() *codec {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(4*pageBytes),
		zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // the options are constants
	}
	return &codec{encoder: e}
}

// Encode implements compress.Codec.
func (c *codec) Encode(dst, src []byte) ([]byte, error) {
	return c.encoder.EncodeAll(src, dst[:0]), nil
}

// shared is for all files because it caches its encoders.
var shared = sync.OnceValue(newCodec)

// Maximum size of a row group in rows, and in bytes before compression. A row group is in memory, compressed, until it
// is written.
const (
	groupRows  = 50_000
	groupBytes = 24 << 20
	pageBytes  = 64 << 10 // small, so that little is left to compress at the end of a file
)

// A group is a parquet.Group with ordered fields.
type group struct {
	parquet.Group
	fields []parquet.Field
}

func (g *group) Fields() []parquet.Field { return g.fields }

// A field is one column.
type field struct {
	parquet.Node
	name string
}

func (f *field) Name() string { return f.name }

// Value is only used for rows that are structs, which this package does not have.
func (f *field) Value(base reflect.Value) reflect.Value {
	return base.MapIndex(reflect.ValueOf(f.name))
}

// schemaOf returns the schema of a table's files.
func schemaOf(t files.Table) *parquet.Schema {
	g := &group{Group: parquet.Group{}}
	add := func(name string, n parquet.Node) {
		g.Group[name] = n
		g.fields = append(g.fields, &field{n, name})
	}
	for _, name := range t.Own() {
		switch name {
		case destination.KeyColumn:
			add(name, parquet.String())
		case destination.VersionColumn:
			add(name, node(destination.Integer))
		case destination.CommittedColumn, destination.ValidFrom:
			add(name, node(destination.Time))
		default:
			add(name, parquet.Optional(node(destination.Time)))
		}
	}
	for _, c := range t.Shape.Columns {
		add(c.Name, parquet.Optional(node(c.Type)))
	}
	if t.Mode != "" {
		add(destination.RestColumn, parquet.Optional(node(destination.JSON)))
	}
	return parquet.NewSchema("row", g)
}

// node returns a column without NULL.
func node(t destination.Type) parquet.Node {
	switch t {
	case destination.Boolean:
		return parquet.Leaf(parquet.BooleanType)
	case destination.Integer:
		return parquet.Leaf(parquet.Int64Type)
	case destination.Number:
		return parquet.Leaf(parquet.DoubleType)
	case destination.Time:
		return parquet.Timestamp(parquet.Microsecond)
	case destination.JSON:
		return parquet.JSON()
	}
	return parquet.String() // includes columns without a type, whose values are all NULL
}

func (format) Create(out io.Writer, t files.Table) (files.Writer, error) {
	w := &writer{table: t, own: len(t.Own())}
	w.out = parquet.NewGenericWriter[any](out, schemaOf(t), parquet.Compression(shared()), parquet.PageBufferSize(pageBytes),
		parquet.CreatedBy("sluice", "", ""))
	w.columns = w.out.ColumnWriters()
	if want := w.own + len(t.Shape.Columns); len(w.columns) < want {
		return nil, fmt.Errorf("a schema of %d columns, want %d", len(w.columns), want)
	}
	w.start()
	return w, nil
}
