package store

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound means that nothing has that id.
	ErrNotFound = errors.New("not found")
	// ErrFenced means that the lease of a commit is not the connection's current one:
	// another run took over, or the lease was released.
	ErrFenced = errors.New("run no longer holds its connection")
	// ErrRunTerminal means that the run already has its terminal event.
	ErrRunTerminal = errors.New("run has ended")
	// ErrNoSpace means that the disk has less free space than the store needs.
	ErrNoSpace = errors.New("not enough free disk space")
	// ErrUnavailable means that the database cannot be reached, or is too busy: what was asked may be possible later.
	ErrUnavailable = errors.New("the database is not available")
	// ErrReadOnly means that the store was found damaged when opened and accepts no writes.
	ErrReadOnly = errors.New("store is read-only")
	// ErrNotEmpty means that a store to be filled has been written to.
	ErrNotEmpty = errors.New("store is not empty")
	// ErrSourceChanged means that a store was written to while it was copied.
	ErrSourceChanged = errors.New("the source changed meanwhile")
	// ErrStopped means that the store takes no more writes until it is opened again.
	ErrStopped = errors.New("the store takes no more writes")
	// ErrClosed means that the store was closed.
	ErrClosed = errors.New("store is closed")
	// ErrSilent means that other hosts may have removed this one (Members).
	ErrSilent = errors.New(
		"this host was not heard of for the time of its lease, so another one may do this instead; it goes on by itself once it is heard of")
	// ErrCursorExpired means that a page or changes-since cursor is unreadable or older
	// than the kept history.
	ErrCursorExpired = errors.New("cursor expired")
)

// An ActiveError says which run holds the connection.
type ActiveError struct{ RunID RunID }

func (e *ActiveError) Error() string { return fmt.Sprintf("run %s is active", e.RunID) }

// A BusyError says which process holds the data directory.
type BusyError struct {
	Dir  string
	PID  int
	Host string
}

func (e *BusyError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("data directory %s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("data directory %s is in use by process %d on %s", e.Dir, e.PID, e.Host)
}

// A DamageError says what was found damaged at open or on a read.
type DamageError struct {
	Code   string // store_truncated or store_corrupt
	Detail string
	Stream Stream // set when only one stream is affected
}

// Corrupt returns a DamageError with code store_corrupt; the arguments are those of
// fmt.Sprintf.
func Corrupt(format string, args ...any) *DamageError {
	return &DamageError{Code: "store_corrupt", Detail: fmt.Sprintf(format, args...)}
}

func (e *DamageError) Error() string { return e.Code + ": " + e.Detail }

// A StateError says that the cursor of one stream was refused.
type StateError struct {
	Stream Stream
	Err    error
}

func (e *StateError) Error() string { return fmt.Sprintf("commit state of %s: %v", e.Stream, e.Err) }
func (e *StateError) Unwrap() error { return e.Err }

// A SinkError is a refusal with a code, such as for an unusable grant or an unknown stream.
type SinkError struct {
	Code   string // grant_expired, not_found, rate_limit_error, …
	Stream Stream
	Err    error
}

func (e *SinkError) Error() string { return e.Code + ": " + e.Err.Error() }
func (e *SinkError) Unwrap() error { return e.Err }
