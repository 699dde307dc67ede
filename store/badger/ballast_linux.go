package badger

import (
	"fmt"
	"os"
	"syscall"
)

// allocate reserves n bytes of f on the disk.
func allocate(f *os.File, n int64) error {
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, n); err != nil {
		return fmt.Errorf("allocate ballast: %w", err)
	}
	return nil
}
