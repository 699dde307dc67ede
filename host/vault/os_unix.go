//go:build unix

package vault

import (
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
