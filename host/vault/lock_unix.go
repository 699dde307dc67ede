//go:build unix

package vault

import (
	"errors"
	"os"
	"syscall"
)

// lock waits for a lock on an open directory. Every opening has its own, so it
// keeps goroutines apart as it does processes.
func lock(f *os.File, how lockKind) (release func(), err error) {
	op := syscall.LOCK_SH
	if how == exclusive {
		op = syscall.LOCK_EX
	}
	for {
		err := syscall.Flock(int(f.Fd()), op)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		return func() {}, err // closing f gives it back
	}
}
