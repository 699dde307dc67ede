//go:build linux || darwin

package filesystem

import (
	"io/fs"
	"syscall"
)

// openSafely keeps open from blocking on a FIFO and from acquiring a controlling terminal.
const openSafely = syscall.O_NONBLOCK | syscall.O_NOCTTY

const openDirectory = syscall.O_DIRECTORY

// quotaExceeded is the error of file systems with quotas.
const quotaExceeded = syscall.EDQUOT

// identify returns the identity of a file.
func identify(fi fs.FileInfo) (identity, bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, false
	}
	return identity{device: uint64(st.Dev), inode: st.Ino, kind: fi.Mode().Type()}, true
}

// links returns the number of names a file has.
func links(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// weight returns what a file counts against a quota: the larger of its logical size and its
// disk space, so that sparse files count in full.
func weight(fi fs.FileInfo) int64 {
	const statBlock = 512 // the unit of st_blocks, whatever the file system's
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return max(fi.Size(), st.Blocks*statBlock)
	}
	return fi.Size()
}
