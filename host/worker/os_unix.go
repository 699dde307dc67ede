//go:build unix

package worker

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// mapModule maps the file of a descriptor for reading. The pages are those of the sealed file; nothing is copied.
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

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Write(fd, b)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// readSome reads at least one byte. The descriptor is blocking: the guest's own thread waits in the kernel, which is
// faster than handing over within the process.
func readSome(fd int, b []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, b)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// prepareSocket makes the descriptor blocking.
func prepareSocket(fd int) error { return syscall.SetNonblock(fd, false) }
