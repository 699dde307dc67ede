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

// processCPU is the CPU time this process has used.
func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
