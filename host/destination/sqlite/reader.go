package sqlite

import (
	"context"
	"errors"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/host/destination"
)

// ReadOnlyURI returns the URI for reading a file.
func ReadOnlyURI(path string) string { return "file:" + escapePath(path) + "?mode=ro" }

// A Reader reads which streams a file contains.
type Reader struct{ s Sink }

// Read opens for reading a file made by a Sink.
func Read(path string) (*Reader, error) {
	db, err := sqlite3.Open(ReadOnlyURI(path))
	if err != nil {
		return nil, told(err)
	}
	if err := db.BusyTimeout(busy); err != nil { // the writer may be closing it
		return nil, errors.Join(err, db.Close())
	}
	return &Reader{Sink{db: db}}, nil
}

// Holdings returns what the file has, by stream.
func (r *Reader) Holdings(ctx context.Context) (map[destination.StreamID]destination.Holding, error) {
	return r.s.Holdings(ctx)
}

// Close closes the file.
func (r *Reader) Close() error { return r.s.Close() }
