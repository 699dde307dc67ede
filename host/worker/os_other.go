//go:build unix && !linux

package worker

import (
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

// awaitHangup returns when the host is gone, which it detects by the change of parent, because these systems have no
// common way to wait for a hang-up.
func awaitHangup(int) error {
	parent := os.Getppid()
	for range time.Tick(time.Second) {
		if os.Getppid() != parent {
			return nil
		}
	}
	return nil
}

// descriptors is the directory of descriptors as paths.
const descriptors = "/dev/fd"

// processCPU returns the CPU time that this process has used.
func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
