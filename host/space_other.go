//go:build !linux && !darwin && !freebsd

package host

// freeSpace is not measured here.
func freeSpace(string) (uint64, bool) { return 0, false }
