//go:build unix

package private

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// foreign reports whether a file belongs to another user than this process's.
func foreign(fi fs.FileInfo) bool {
	s, ok := fi.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) != os.Geteuid()
}

// exposed reports whether others than the owner have access to a file.
func exposed(fi fs.FileInfo) bool { return fi.Mode().Perm()&0o077 != 0 }

func syncDir(f *os.File) error { return f.Sync() }

// Lock locks an open directory, against everybody or, if shared, against those who change
// something. Each open file has its own lock, so it works between goroutines as between processes.
func Lock(f *os.File, shared bool) (release func(), err error) {
	op := syscall.LOCK_EX
	if shared {
		op = syscall.LOCK_SH
	}
	for {
		err := syscall.Flock(int(f.Fd()), op)
		if !errors.Is(err, syscall.EINTR) {
			return func() {}, err // closing f releases it
		}
	}
}

// LockFile locks an open file against everybody else's LockFile, for which it waits until ctx ends. The lock is that of
// the open file: it excludes other goroutines too, and is released when the file is closed, also by the processes that
// inherited it.
func LockFile(ctx context.Context, f *os.File) error {
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
