//go:build unix && !linux

package worker

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

func writeBoth(fd int, head, body []byte) error {
	if err := writeAll(fd, head); err != nil {
		return err
	}
	return writeAll(fd, body)
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

func prepareSocket(fd int) error { return syscall.SetNonblock(fd, false) }

// awaitHangup returns when the host is gone: then this process has another
// parent. There is no wait for a hang-up that every system here has.
func awaitHangup(int) error {
	parent := os.Getppid()
	for range time.Tick(time.Second) {
		if os.Getppid() != parent {
			return nil
		}
	}
	return nil
}

// descriptors is where a descriptor has a path.
const descriptors = "/dev/fd"
