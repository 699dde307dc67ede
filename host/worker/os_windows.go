package worker

import (
	"io"
	"syscall"
	"time"

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

// processCPU is the CPU time this process has used.
func processCPU() time.Duration {
	var created, exited, kernel, user syscall.Filetime
	self, err := syscall.GetCurrentProcess()
	if err != nil || syscall.GetProcessTimes(self, &created, &exited, &kernel, &user) != nil {
		return 0
	}
	ticks := func(f syscall.Filetime) time.Duration { // of 100 ns
		return time.Duration(uint64(f.HighDateTime)<<32|uint64(f.LowDateTime)) * 100
	}
	return ticks(kernel) + ticks(user)
}
