//go:build unix

package app

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUs reports whether the user of this process owns a file.
func ownedByUs(fi fs.FileInfo) bool {
	s, ok := fi.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) == os.Geteuid()
}

// restrictUmask makes everything that the process writes private.
func restrictUmask() { syscall.Umask(0o077) }
