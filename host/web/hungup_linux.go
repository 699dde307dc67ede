package web

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the other side of a socket sends nothing any more. Nothing is read:
// what is there may be the next request.
func hungUp(raw syscall.RawConn) (yes bool) {
	err := raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} // #nosec G115 -- a descriptor
		n, err := unix.Poll(fds, 0)
		yes = err == nil && n > 0 && fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return yes || err != nil // it is closed
}
