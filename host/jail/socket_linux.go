package jail

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	noSignal    = unix.MSG_NOSIGNAL
	closeOnExec = unix.MSG_CMSG_CLOEXEC
)

func duplicateTo(from, to int) error { return unix.Dup3(from, to, unix.O_CLOEXEC) }

// socketPair makes the channel of S11: the host's end does not block a thread,
// the worker's end blocks.
func socketPair() (host, worker *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		closeFD(fds[0])
		closeFD(fds[1])
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "host"), nil
}
