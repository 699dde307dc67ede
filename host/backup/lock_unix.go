//go:build unix

package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// lock waits for the lock of an open file, which is released when it is closed, also by the processes that inherited it.
func lock(ctx context.Context, f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // #nosec G115 -- a descriptor fits
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// private reports whether a file is a directory of this user alone.
func private(fi fs.FileInfo) bool {
	s, ok := fi.Sys().(*syscall.Stat_t)
	return fi.IsDir() && fi.Mode().Perm()&0o077 == 0 && ok && int(s.Uid) == os.Geteuid()
}
