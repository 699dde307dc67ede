//go:build linux || darwin || freebsd

package app

import "syscall"

// freeSpace is how many bytes the user may still write below dir.
func freeSpace(dir string) (uint64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true
}
