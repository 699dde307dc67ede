package jail

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// closeOthers closes every descriptor above [DirFD] that could lead anywhere
// (S11). The Go runtime's own poller and event counter stay: they are the only
// descriptors without a file type. Numbers are given lowest first, so a process
// that has just begun has none of its own above nearby.
func closeOthers() error {
	const nearby = 64
	for fd := DirFD + 1; fd < nearby; fd++ {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT == 0 {
			continue
		}
		closeFD(fd)
	}
	err := unix.CloseRange(nearby, math.MaxInt32, 0)
	if errors.Is(err, unix.ENOSYS) {
		return nil // before Linux 5.9 close-on-exec is the only wall
	}
	return err
}
