package worker

import (
	"io"
	"syscall"

	"github.com/sluicehost/sluice/host/jail"
)

func writeBoth(fd int, head, body []byte) error {
	if err := writeAll(fd, head); err != nil {
		return err
	}
	return writeAll(fd, body)
}

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Write(syscall.Handle(fd), b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func readSome(fd int, b []byte) (int, error) {
	n, err := syscall.Read(syscall.Handle(fd), b)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return n, err
}

// prepareSocket refuses: host/jail starts no worker on this system.
func prepareSocket(int) error { return jail.ErrUnsupported }

func awaitHangup(int) error { return jail.ErrUnsupported }

func mapModule(int) ([]byte, error) { return nil, jail.ErrUnsupported }

// descriptors is where a descriptor has a path.
const descriptors = "/dev/fd"
