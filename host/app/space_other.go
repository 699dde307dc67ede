//go:build !linux && !darwin && !freebsd

package app

// freeSpace reports that the free space is not known on this system.
func freeSpace(string) (uint64, bool) { return 0, false }
