//go:build unix

package worker

import (
	"fmt"
	"syscall"
)

// mapModule maps the file of a descriptor for reading: the pages stay the
// sealed file's, nothing is copied.
func mapModule(fd int) ([]byte, error) {
	var info syscall.Stat_t
	if err := syscall.Fstat(fd, &info); err != nil {
		return nil, fmt.Errorf("stat module: %w", err)
	}
	if info.Size == 0 {
		return nil, nil
	}
	b, err := syscall.Mmap(fd, 0, int(info.Size), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map module: %w", err)
	}
	return b, nil
}
