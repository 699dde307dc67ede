package files

import (
	"io"
	"os"
	"time"

	"github.com/sluicehost/sluice/host/destination"
)

// A Format is how rows are spelled in part files.
type Format interface {
	// Name is that of the scheme, and the extension of files.
	Name() string
	// Key is how a key is found in files; two keys never become one.
	Key(key string) string
	// Fits says that files of a shape may stay beside those of a later one.
	Fits(from, to *destination.Shape) bool
	// Create begins a file.
	Create(w io.Writer, t Table) (Writer, error)
	// Open reads a file that was written for t. keys says that nothing but Key and Live
	// is asked of the rows.
	Open(f *os.File, t Table, keys bool) (Reader, error)
}

// A Table is what the columns of a file follow from. Without a Mode it has the columns
// of its shape only.
type Table struct {
	Mode  destination.Mode
	Shape *destination.Shape
}

// Own are the columns of the table's own but destination.RestColumn, in their order.
func (t Table) Own() []string {
	switch t.Mode {
	case "":
		return nil
	case destination.History:
		return []string{destination.KeyColumn, destination.VersionColumn, destination.CommittedColumn, destination.ValidFrom, destination.ValidTo}
	}
	return []string{destination.KeyColumn, destination.VersionColumn, destination.CommittedColumn, destination.DeletedColumn}
}

// A Writer writes one file.
type Writer interface {
	// Put writes a new row, which stays as it is until Close.
	Put(r *destination.Row) error
	// Copy writes the row at which a reader of the same format is. A change, if it is not
	// nil, ends the row where all versions are kept, and else says that it was deleted.
	Copy(from Reader, change *destination.Row) error
	// Close ends the file, and leaves what it writes to open.
	Close() error
}

// A Reader reads the rows of one file.
type Reader interface {
	// Next goes to the next row, or returns io.EOF.
	Next() error
	// Key is the row's, by Format.Key. It is valid until the next row.
	Key() []byte
	// Version is the row's.
	Version() uint64
	// Live says that the row is the newest of its key: false for one with ValidTo.
	Live() bool
}

// layout is how instants are spelled.
const layout = "2006-01-02T15:04:05.000000Z"

// Stamp is an instant as text.
func Stamp(t time.Time) string { return t.UTC().Format(layout) }

// A stamper spells instants. Most are in the same second as the one before.
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
