package sqlite

import (
	"context"
	"errors"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/host/destination"
)

// ReadOnlyURI names a file for readers.
func ReadOnlyURI(path string) string { return "file:" + escapePath(path) + "?mode=ro" }

// A Reader reads what a file holds of streams.
type Reader struct{ s Sink }

// Read opens a file that a Sink made, for reading.
func Read(path string) (*Reader, error) {
	db, err := sqlite3.Open(ReadOnlyURI(path))
	if err != nil {
		return nil, told(err)
	}
	if err := db.BusyTimeout(busy); err != nil { // who feeds the file may be closing it
		return nil, errors.Join(err, db.Close())
	}
	return &Reader{Sink{db: db}}, nil
}

// Holdings are what the file has, by stream.
func (r *Reader) Holdings(ctx context.Context) (map[destination.StreamID]destination.Holding, error) {
	return r.s.Holdings(ctx)
}

// Close lets go of the file.
func (r *Reader) Close() error { return r.s.Close() }
