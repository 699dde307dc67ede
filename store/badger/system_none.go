//go:build !unix

package badger

import (
	"errors"
	"fmt"
	"os"
)

// acquireLock fails: without file locks a data directory could be opened twice. A store in memory needs none.
func acquireLock(dir string) (*os.File, error) {
	return nil, fmt.Errorf("lock data directory %s: %w on this system; use --store memory:", dir, errors.ErrUnsupported)
}

func freeSpace(string) (uint64, error) { return 0, errors.ErrUnsupported }

// private does nothing where files have no modes.
func private() {}

func releaseLock(f *os.File) error { return f.Close() }
