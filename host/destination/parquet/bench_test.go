package parquet_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/destinationtest"
	"github.com/sluicehost/sluice/host/destination/parquet"
)

// BenchmarkSink is beside parquet.Writer, which writes rows of values that are made before
// into one file, with a schema made at run time.
func BenchmarkSink(b *testing.B) {
	dir := b.TempDir()
	n := 0
	destinationtest.Bench(b, parquet.Kind, func() string {
		n++
		return "parquet:" + filepath.Join(dir, "out", string(rune('a'+n)))
	}, func() (func([]destination.Row) func() error, func() error) {
		f, err := os.Create(filepath.Join(dir, "bare.parquet"))
		if err != nil {
			b.Fatal(err)
		}
		text, integer, instant := pq.String(), pq.Leaf(pq.Int64Type), pq.Timestamp(pq.Microsecond)
		w := pq.NewWriter(f, pq.NewSchema("row", pq.Group{
			"a_key": text, "a_version": integer, "b_committed": instant, "c_id": pq.Optional(integer),
			"d_subject": pq.Optional(text), "e_from": pq.Optional(text), "f_amount": pq.Optional(pq.Leaf(pq.DoubleType)),
			"g_read": pq.Optional(pq.Leaf(pq.BooleanType)), "h_at": pq.Optional(instant), "i_labels": pq.Optional(pq.JSON()),
			"j_note": pq.Optional(text),
		}), pq.Compression(&zstd.Codec{Level: zstd.SpeedFastest}))
		prepare := func(rows []destination.Row) func() error {
			out := make([]pq.Row, len(rows))
			for i, r := range rows {
				out[i] = pq.Row{pq.ValueOf(r.Key).Level(0, 0, 0), pq.Int64Value(int64(r.Version)).Level(0, 0, 1), pq.Int64Value(r.At.UnixMicro()).Level(0, 0, 2)} // #nosec G115
				for j, v := range r.Values {
					out[i] = append(out[i], value(v).Level(0, 1, 3+j))
				}
			}
			return func() error { _, err := w.WriteRows(out); return err }
		}
		return prepare, func() error {
			return errors.Join(w.Close(), f.Sync(), f.Close())
		}
	})
}

func value(v destination.Value) pq.Value {
	switch v.Type {
	case destination.Boolean:
		return pq.BooleanValue(v.Integer != 0)
	case destination.Integer:
		return pq.Int64Value(v.Integer)
	case destination.Number:
		return pq.DoubleValue(v.Number)
	case destination.Time:
		return pq.Int64Value(v.Integer)
	}
	return pq.ValueOf(v.Text)
}
