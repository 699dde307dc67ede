//go:build !linux && !darwin && !freebsd

package app

// freeSpace is not measured here.
func freeSpace(string) (uint64, bool) { return 0, false }
