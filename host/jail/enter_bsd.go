//go:build darwin || freebsd || netbsd || openbsd

package jail

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Inside is a worker behind what walls there are.
type Inside struct {
	// Dir is the path at which the worker finds the directory it was handed, "" without one.
	Dir string

	isolation Isolation
}

// Isolation is what holds: level "process" (S23).
func (i *Inside) Isolation() Isolation { return i.isolation }

// Prepare does nothing here.
func Prepare() {}

// Enter sets the limits that the system honours (S23). dir is the open directory
// that the worker may see, or [NoDir]. Memory is watched by the worker itself,
// because address-space limits are not dependable here. The error is [ErrPromise]
// if cfg promises more than a process, and [ErrOrphan] if the host is gone.
func Enter(cfg Config, dir int) (*Inside, error) {
	in := &Inside{isolation: none()}
	if dir != NoDir {
		in.Dir = fmt.Sprintf("/dev/fd/%d", dir)
	}
	if !cfg.Walls.resolved().NoLimits {
		limits, err := cfg.Limits.completed()
		if err != nil {
			return nil, err
		}
		if err := setLimits(limits); err != nil {
			return nil, fmt.Errorf("set limits: %w", err)
		}
		go watchMemory(limits.DataBytes)
		in.isolation.Rlimits = true
	}
	if os.Getppid() != cfg.Identity.Parent {
		return nil, ErrOrphan
	}
	in.isolation = in.isolation.judged()
	if cfg.Promised != nil && len(in.isolation.Lacks(*cfg.Promised)) > 0 {
		return nil, ErrPromise
	}
	return in, nil
}

// Seal changes nothing: there is no filter to install.
func (i *Inside) Seal() (Isolation, error) { return i.isolation, nil }

func setLimits(l Limits) error {
	for resource, value := range map[int]uint64{
		unix.RLIMIT_CPU:    l.cpuSeconds(),
		unix.RLIMIT_FSIZE:  l.FileBytes,
		unix.RLIMIT_NOFILE: uint64(l.Files),
		unix.RLIMIT_CORE:   0,
	} {
		if err := setLimit(resource, value); err != nil {
			return err
		}
	}
	return nil
}

// Conceal forbids core files of the calling process, a host, and of what it starts (S94).
func Conceal() error { return setLimit(unix.RLIMIT_CORE, 0) }

// watchMemory ends the process, every 100 ms, if it has become too large.
func watchMemory(most uint64) {
	for range time.Tick(100 * time.Millisecond) {
		var usage unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err == nil && uint64(usage.Maxrss)*maxrssUnit > most {
			_, _ = os.Stderr.WriteString("worker: out of memory\n") // the exit says it too
			os.Exit(2)
		}
	}
}
