package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
)

// IsFull reports whether an error says that the disk is full. The log's index, which is shared memory in a file, has a
// code of its own.
func IsFull(err error) bool {
	return errors.Is(err, sqlite3.FULL) || errors.Is(err, sqlite3.IOERR_WRITE) || errors.Is(err, sqlite3.IOERR_SHMSIZE) ||
		errors.Is(err, syscall.ENOSPC)
}

// told adds an explanation for the owner to an error of SQLite.
func told(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sqlite3.NOTADB):
		return fmt.Errorf("%w: the file is no database of SQLite", destination.ErrForeign)
	case IsFull(err):
		return fmt.Errorf("the disk is full: %w", err)
	case errors.Is(err, sqlite3.CORRUPT):
		return fmt.Errorf("the file is damaged; remove it, and it is made anew: %w", err)
	case errors.Is(err, sqlite3.BUSY):
		return fmt.Errorf("another program has locked the file: %w", err)
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, sqlite3.CANTOPEN), errors.Is(err, sqlite3.PERM):
		return fmt.Errorf("the host may not write to the file, or beside it: %w", err)
	case errors.Is(err, sqlite3.ERROR) && strings.Contains(err.Error(), "error in "):
		return destination.Blocked(
			"a column has to change its type, and an index, a view or a trigger uses it; drop that first (" +
				abi.Clean(err.Error()) + ")")
	case errors.Is(err, sqlite3.ERROR), errors.Is(err, sqlite3.CONSTRAINT):
		return destination.Blocked("somebody changed the table; rebuild the destination (" + abi.Clean(err.Error()) + ")")
	}
	return err
}
