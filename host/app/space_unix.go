//go:build linux || darwin || freebsd

package app

import "syscall"

// freeSpace returns how many bytes the user may still write below dir. It reports false if that is not known.
func freeSpace(dir string) (uint64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true
}
