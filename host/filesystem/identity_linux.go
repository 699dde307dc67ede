package filesystem

import (
	"io/fs"
	"syscall"
)

// changed returns the change time in nanoseconds since 1970.
func changed(fi fs.FileInfo) int64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return fi.ModTime().UnixNano()
}
