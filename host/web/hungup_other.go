//go:build !linux

package web

import "syscall"

// hungUp is not known here.
func hungUp(syscall.RawConn) bool { return false }
