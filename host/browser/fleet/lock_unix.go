//go:build unix

package fleet

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file against other processes and other open files of this process. It reports
// false if the lock is held.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // #nosec G115 -- a descriptor fits
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
