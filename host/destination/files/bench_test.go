package files_test

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/destinationtest"
	"github.com/sluicehost/sluice/host/destination/files"
)

// line is a row as encoding/json takes it best: a struct that is known when it is compiled.
type line struct {
	Key       string          `json:"_key"`
	Version   uint64          `json:"_version"`
	Committed time.Time       `json:"_committed_at"`
	ID        int64           `json:"id"`
	Subject   string          `json:"subject"`
	From      string          `json:"from"`
	Amount    float64         `json:"amount"`
	Read      bool            `json:"read"`
	At        string          `json:"at"`
	Labels    json.RawMessage `json:"labels"`
	Note      string          `json:"note"`
}

// BenchmarkSink is beside encoding/json and encoding/csv, which write into one file.
func BenchmarkSink(b *testing.B) {
	b.Run("jsonl", func(b *testing.B) {
		bench(b, files.JSONL, func(out *bufio.Writer) func([]destination.Row) func() error {
			e := json.NewEncoder(out)
			return func(rows []destination.Row) func() error {
				lines := make([]line, len(rows))
				for i, r := range rows {
					v := r.Values
					lines[i] = line{r.Key, r.Version, r.At.UTC(), v[0].Integer, v[1].Text, v[2].Text, v[3].Number, v[4].Integer == 1,
						v[5].Text, json.RawMessage(v[6].Text), v[7].Text}
				}
				return func() error {
					for i := range lines {
						if err := e.Encode(&lines[i]); err != nil {
							return err
						}
					}
					return nil
				}
			}
		})
	})
	b.Run("csv", func(b *testing.B) {
		bench(b, files.CSV, func(out *bufio.Writer) func([]destination.Row) func() error {
			e := csv.NewWriter(out)
			return func(rows []destination.Row) func() error {
				lines := make([][]string, len(rows))
				for i, r := range rows {
					lines[i] = []string{r.Key, strconv.FormatUint(r.Version, 10), files.Stamp(r.At)}
					for _, v := range r.Values {
						lines[i] = append(lines[i], v.Text)
					}
				}
				return func() error { return e.WriteAll(lines) }
			}
		})
	})
}

func bench(b *testing.B, k files.Kind, encoder func(*bufio.Writer) func([]destination.Row) func() error) {
	dir := b.TempDir()
	n := 0
	destinationtest.Bench(b, k, func() string {
		n++
		return k.Scheme() + filepath.Join(dir, "out", strconv.Itoa(n))
	}, func() (func([]destination.Row) func() error, func() error) {
		f, err := os.Create(filepath.Join(dir, "bare"))
		if err != nil {
			b.Fatal(err)
		}
		out := bufio.NewWriterSize(f, 1<<18)
		return encoder(out), func() error {
			return errors.Join(out.Flush(), f.Sync(), f.Close())
		}
	})
}
