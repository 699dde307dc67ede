package jail

import "golang.org/x/sys/unix"

// setLimits sets both soft and hard limits. If they are equal, the kernel ends a worker at its CPU limit with SIGKILL,
// which works although the Go runtime ignores SIGXCPU and that signal cannot end pid 1 of a namespace. Threads are
// limited by [forbidThreads].
func setLimits(l Limits) error {
	wanted := []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_DATA, l.DataBytes},
		{unix.RLIMIT_AS, l.AddressBytes},
		{unix.RLIMIT_STACK, stackBytes}, // of the first thread, which RLIMIT_DATA excludes
		{unix.RLIMIT_CPU, l.cpuSeconds()},
		{unix.RLIMIT_FSIZE, l.FileBytes},
		{unix.RLIMIT_NOFILE, uint64(l.Files)},
		{unix.RLIMIT_CORE, 0},
		// Kernel resources other than the process's memory, counted by uid.
		{unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
		{unix.RLIMIT_SIGPENDING, pendingSignals},
		{unix.RLIMIT_NICE, 0},
		{unix.RLIMIT_RTPRIO, 0},
	}
	for _, w := range wanted {
		if err := lower(w.resource, w.value); err != nil {
			return err
		}
	}
	return nil
}

const (
	stackBytes     = 8 * mebibyte
	pendingSignals = 64
)

// lower sets a limit to value, or to the present hard limit if that is lower.
func lower(resource int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Prlimit(0, resource, nil, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return unix.Prlimit(0, resource, &unix.Rlimit{Cur: value, Max: value}, nil)
}
