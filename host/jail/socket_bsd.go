//go:build darwin || freebsd || netbsd || openbsd

package jail

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The runtime turns a write to a closed socket into an error, and received
// descriptors are closed on exec right after they arrive.
const (
	noSignal    = 0
	closeOnExec = 0
)

func duplicateTo(from, to int) error {
	if err := unix.Dup2(from, to); err != nil {
		return err
	}
	unix.CloseOnExec(to)
	return nil
}

// socketPair makes the channel of S11: the host's end does not block a thread,
// the worker's end blocks.
func socketPair() (host, worker *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[1]), "host"), fds[0]
	if err := unix.SetNonblock(theirs, true); err != nil {
		_ = ours.Close() // never used
		_ = unix.Close(theirs)
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	return os.NewFile(uintptr(theirs), "worker"), ours, nil
}
