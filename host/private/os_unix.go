//go:build unix

package private

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// foreign reports whether a file belongs to another user than this process's.
func foreign(fi fs.FileInfo) bool {
	s, ok := fi.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) != os.Geteuid()
}

// exposed reports whether others than the owner can reach a file.
func exposed(fi fs.FileInfo) bool { return fi.Mode().Perm()&0o077 != 0 }

func syncDir(f *os.File) error { return f.Sync() }

// Lock waits for a lock on an open directory, which keeps out everybody, or those who
// change something when it is shared. Every opening has its own, so it keeps goroutines
// apart as it does processes.
func Lock(f *os.File, shared bool) (release func(), err error) {
	op := syscall.LOCK_EX
	if shared {
		op = syscall.LOCK_SH
	}
	for {
		err := syscall.Flock(int(f.Fd()), op)
		if !errors.Is(err, syscall.EINTR) {
			return func() {}, err // closing f gives it back
		}
	}
}
