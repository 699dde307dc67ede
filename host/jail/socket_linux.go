package jail

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	noSignal    = unix.MSG_NOSIGNAL
	closeOnExec = unix.MSG_CMSG_CLOEXEC
)

func duplicateTo(from, to int) error { return unix.Dup3(from, to, unix.O_CLOEXEC) }

// socketBuffer holds what the host sends at once, so that it does not wait for the
// worker in the middle of a piece of a body: 256 KiB. The kernel doubles it for its
// own needs, and takes less where net.core.wmem_max is less.
const socketBuffer = 256 << 10

// socketPair makes the channel of S11: the host's end does not block a thread,
// the worker's end blocks.
func socketPair() (host, worker *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	err = errors.Join(unix.SetNonblock(fds[0], true), unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer))
	if err != nil {
		closeFD(fds[0])
		closeFD(fds[1])
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "host"), nil
}
