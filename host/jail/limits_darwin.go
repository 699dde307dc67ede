package jail

import "golang.org/x/sys/unix"

const maxrssUnit = 1 // bytes

func setLimit(resource int, value uint64) error {
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value})
}
