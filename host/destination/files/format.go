package files

import (
	"io"
	"os"
	"time"

	"github.com/sluicehost/sluice/host/destination"
)

// A Format is an encoding of rows in part files.
type Format interface {
	// Name returns the scheme, which is also the extension of the files.
	Name() string
	// Key returns a key as it is found in files. Different keys have different results.
	Key(key string) string
	// Fits reports whether files of one shape may stay beside those of a later one.
	Fits(from, to *destination.Shape) bool
	// Create begins a file.
	Create(w io.Writer, t Table) (Writer, error)
	// Open reads a file that was written for t. If keys is true, only Key and Live of the rows are needed.
	Open(f *os.File, t Table, keys bool) (Reader, error)
}

// A Table determines the columns of a file. Without a Mode these are only the columns of its shape.
type Table struct {
	Mode  destination.Mode
	Shape *destination.Shape
}

// Own returns the table's own columns in order, except for destination.RestColumn.
func (t Table) Own() []string {
	switch t.Mode {
	case "":
		return nil
	case destination.History:
		return []string{destination.KeyColumn, destination.VersionColumn, destination.CommittedColumn, destination.ValidFrom,
			destination.ValidTo}
	}
	return []string{destination.KeyColumn, destination.VersionColumn, destination.CommittedColumn,
		destination.DeletedColumn}
}

// A Writer writes one file.
type Writer interface {
	// Put writes a new row. The caller must not change it before Close.
	Put(r *destination.Row) error
	// Copy writes the current row of a reader of the same format. A change that is not nil ends the row's validity in
	// History mode, otherwise marks it as deleted.
	Copy(from Reader, change *destination.Row) error
	// Close ends the file without closing the underlying writer.
	Close() error
}

// A Reader reads the rows of one file.
type Reader interface {
	// Next advances to the next row, or returns io.EOF.
	Next() error
	// Key returns the row's key, by Format.Key. It is valid until the next row.
	Key() []byte
	// Version returns the row's version.
	Version() uint64
	// Live reports whether the row is the newest of its key, so has no ValidTo.
	Live() bool
}

// layout is the format of instants.
const layout = "2006-01-02T15:04:05.000000Z"

// Stamp returns an instant as text.
func Stamp(t time.Time) string { return t.UTC().Format(layout) }

// A stamper formats instants, most of which are in the same second as the one before.
type stamper struct {
	second int64
	text   []byte
}

func (s *stamper) append(b []byte, t time.Time) []byte {
	if second := t.Unix(); s.text == nil || second != s.second {
		s.second, s.text = second, t.UTC().AppendFormat(s.text[:0], layout)
	}
	micro := t.Nanosecond() / 1000
	for i := len(s.text) - 2; s.text[i] != '.'; i-- {
		s.text[i] = byte('0' + micro%10) // #nosec G115 -- a digit
		micro /= 10
	}
	return append(b, s.text...)
}
