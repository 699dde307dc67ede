//go:build unix

package audit

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lock waits for the lock on an open directory. Every opening has its own, so it
// keeps goroutines apart as it does processes; closing f gives it back.
func lock(f *os.File) (release func(), err error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return func() {}, err
		}
	}
}

// foreign reports whether a file belongs to another user than this process's.
func foreign(fi fs.FileInfo) bool {
	s, ok := fi.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) != os.Geteuid()
}

// exposed reports whether others than the owner can reach a file.
func exposed(fi fs.FileInfo) bool { return fi.Mode().Perm()&0o077 != 0 }

func syncDir(f *os.File) error { return f.Sync() }
