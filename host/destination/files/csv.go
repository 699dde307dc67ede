package files

import (
	"bufio"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/export"
)

// csvFormat is CSV by RFC 4180 with a header. Cells are as in exports: cleaned, and with a leading ' where a
// spreadsheet would see a formula.
type csvFormat struct{}

func (csvFormat) Name() string { return "csv" }

// Key returns a key as a cell. If cleaning changes it, a digest of the original is appended, because two keys might
// become the same cell.
func (csvFormat) Key(key string) string {
	if key != "" && key[0] != '\'' && export.IsPlain(key) {
		return key // the usual case
	}
	cell := export.Cell(key)
	if abi.CleanLines(key) == key && !strings.HasPrefix(key, "'") {
		return cell
	}
	sum := sha256.Sum256([]byte(key))
	return cell + "_" + hex.EncodeToString(sum[:8])
}

// Fits implements Format. Cells do not depend on the column's type, but every column needs its place.
func (csvFormat) Fits(from, to *destination.Shape) bool { return len(from.Columns) == len(to.Columns) }

func (csvFormat) Create(w io.Writer, t Table) (Writer, error) {
	c := &csvWriter{out: w, table: t, own: len(t.Own())}
	head, taken := t.Own(), map[string]bool{}
	for _, name := range append(slices.Clone(head), destination.RestColumn, destination.DeletedColumn,
		destination.ValidFrom, destination.ValidTo) {
		taken[name] = true
	}
	for _, column := range t.Shape.Columns {
		head = append(head, destination.UniqueName(export.Cell(column.Name), taken)) // cleaning may make two names equal
	}
	if t.Mode != "" {
		head = append(head, destination.RestColumn)
	}
	c.columns = len(head)
	c.row = head
	return c, c.copied()
}

func (csvFormat) Open(f *os.File, t Table, _ bool) (Reader, error) {
	r := &csvReader{in: csv.NewReader(bufio.NewReaderSize(f, 1<<18)), history: t.Mode == destination.History,
		columns: len(t.Shape.Columns)}
	r.in.ReuseRecord = true
	if err := r.Next(); err != nil || len(r.row) != len(t.Own())+r.columns+1 {
		return nil, errors.Join(ErrLost, err)
	}
	return r, nil
}

type csvWriter struct {
	out     io.Writer
	table   Table
	own     int // columns
	columns int
	line    []byte
	stamp   stamper
	row     []string // of a copied row
}

func (w *csvWriter) Close() error { return nil }

func (w *csvWriter) Put(r *destination.Row) error {
	b := w.line[:0]
	if w.own > 0 {
		b = append(export.AppendCell(b, csvFormat{}.Key(r.Key)), ',')
		b = append(strconv.AppendUint(b, r.Version, 10), ',')
		b = append(w.stamp.append(b, r.At), ',')
		if w.table.Mode == destination.History || r.Deleted {
			b = w.stamp.append(b, r.At)
		}
		b = append(b, ",,"[:w.own-3]...)
	}
	for i := range r.Values {
		b = append(appendValue(b, &r.Values[i]), ',')
	}
	for i := w.own + len(r.Values) + 1; i < w.columns; i++ {
		b = append(b, ',')
	}
	if w.own > 0 {
		b = export.AppendText(b, r.Rest)
	} else {
		b = b[:len(b)-1]
	}
	w.line = append(b, '\n')
	_, err := w.out.Write(w.line)
	return err
}

func appendValue(b []byte, v *destination.Value) []byte {
	switch v.Type {
	case destination.Integer, destination.Number, destination.Boolean:
		return append(b, v.Text...) // -1 is a number, not a formula
	}
	return export.AppendText(b, v.Text)
}

// copied writes w.row.
func (w *csvWriter) copied() error {
	b := w.line[:0]
	for i, cell := range w.row {
		if i > 0 {
			b = append(b, ',')
		}
		b = export.AppendCell(b, cell)
	}
	w.line = append(b, '\n')
	_, err := w.out.Write(w.line)
	return err
}

func (w *csvWriter) Copy(from Reader, change *destination.Row) error {
	r := from.(*csvReader)
	clear(w.row)
	last := len(r.row) - 1
	copy(w.row, r.row[:last])
	w.row[len(w.row)-1] = r.row[last]
	switch {
	case change == nil:
	case w.table.Mode == destination.History:
		w.row[4] = Stamp(change.At)
	default:
		w.row[1], w.row[2] = strconv.FormatUint(change.Version, 10), Stamp(change.At)
		w.row[3] = w.row[2]
	}
	return w.copied()
}

type csvReader struct {
	in      *csv.Reader
	history bool
	columns int
	row     []string
	key     []byte
}

func (r *csvReader) Next() (err error) {
	if r.row, err = r.in.Read(); err != nil {
		var broken *csv.ParseError
		if errors.As(err, &broken) {
			return ErrLost
		}
		return err
	}
	r.key = append(r.key[:0], r.row[0]...)
	return nil
}

func (r *csvReader) Key() []byte { return r.key }

func (r *csvReader) Version() uint64 {
	n, _ := strconv.ParseUint(r.row[1], 10, 64) // 0 if somebody edited it, which only affects names of files
	return n
}

func (r *csvReader) Live() bool { return !r.history || r.row[4] == "" }
