package jail

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Inside is a worker in its jail.
type Inside struct {
	// Dir is the path at which the worker finds its directory, "" if it has none.
	Dir string

	isolation Isolation
	promised  *Isolation
}

// Isolation returns the isolation in force; Seccomp is "load" until [Inside.Seal].
func (i *Inside) Isolation() Isolation { return i.isolation }

// Prepare does what does not depend on the run, so that a pre-spawned worker can do it in advance. It is optional and
// must be called before Enter, which otherwise takes a few milliseconds longer.
func Prepare() {
	_ = volunteer() // Enter reports the error
	dropBounding()
	_ = makeThreads() // Enter reports the error
}

// Enter builds the inner half of the jail around the calling process, in this order:
// limits, an empty root, no identity, no new privileges, Landlock, seccomp filter A. dir is
// the open directory that the worker may see, at [DirFD], or [NoDir]; on return the
// descriptor leads there through the new root only. All higher descriptors are closed.
//
// It is called once, by a process that [Launcher.Start] started, before anything of a guest
// is read. A layer that the machine does not offer is left out, unless cfg requires it:
// then the error is [ErrPromise] and the process must exit. After [ErrOrphan] there is no
// host to report to.
func Enter(cfg Config, dir int) (*Inside, error) {
	if err := makeThreads(); err != nil {
		return nil, err
	}
	// Without cgo every step reaches all threads. With cgo, steps that reach only the calling thread must run on the
	// one that installs the filter for all.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	walls := cfg.Walls.resolved()
	in := &Inside{isolation: none(), promised: cfg.Promised}
	if err := closeOthers(); err != nil {
		return nil, fmt.Errorf("close inherited descriptors: %w", err)
	}
	if !walls.NoLimits {
		if err := in.limit(cfg); err != nil {
			return nil, err
		}
	}
	if err := in.moveIn(cfg, walls, dir); err != nil {
		return nil, err
	}
	if !walls.NoUID {
		in.dropIdentity(cfg.Identity)
	}
	if err := watchParent(cfg.Identity.Parent); err != nil {
		return nil, err
	}
	if walls.Off {
		return in, in.settle()
	}
	if err := forbidNewPrivileges(); err != nil {
		return nil, fmt.Errorf("set no_new_privs: %w", err)
	}
	if !walls.NoLandlock {
		if abi, err := restrictFiles(dir, cfg.Writable); err == nil {
			in.isolation.Landlock = abi
		}
	}
	if !walls.NoLimits {
		if err := forbidThreads(); err != nil {
			return nil, err
		}
	}
	if !walls.NoSeccomp {
		if err := installFilter(filterA(os.Getpid(), cfg.Writable)); err == nil {
			in.isolation.Seccomp = SeccompLoad
		}
	}
	return in, in.settle()
}

// limit sets the resource limits and makes the process undumpable.
func (i *Inside) limit(cfg Config) error {
	limits, err := cfg.Limits.completed()
	if err != nil {
		return err
	}
	if err := volunteer(); err != nil {
		return err
	}
	if err := setLimits(limits); err != nil {
		return fmt.Errorf("set limits: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("become undumpable: %w", err)
	}
	i.isolation.Rlimits = true
	return nil
}

// moveIn enters the new root if there is a mount namespace, and sets i.Dir.
func (i *Inside) moveIn(cfg Config, walls Walls, dir int) error {
	namespaces := slices.Clone(cfg.Identity.Namespaces)
	if walls.NoNamespaces {
		namespaces = nil
	}
	if slices.Contains(namespaces, NamespaceMount) {
		if err := enterRoot(dir, cfg.Writable); errors.Is(err, errHalfway) {
			return err
		} else if err != nil {
			namespaces = slices.DeleteFunc(namespaces, func(n string) bool { return n == NamespaceMount })
		} else if dir != NoDir {
			i.Dir = rootDir
		}
	}
	if i.Dir == "" && dir != NoDir {
		// A magic link requires no permission for the directories above its target.
		i.Dir = fmt.Sprintf("/proc/self/fd/%d", dir)
	}
	i.isolation.Namespaces = append(i.isolation.Namespaces, namespaces...)
	return nil
}

// settle computes the level and compares the result with the required isolation.
func (i *Inside) settle() error {
	i.isolation = i.isolation.judged()
	if i.promised == nil {
		return nil
	}
	promised := *i.promised
	if i.isolation.Seccomp == SeccompLoad && promised.Seccomp == SeccompStrict {
		promised.Seccomp = SeccompLoad // Seal comes later
	}
	if lacking := i.isolation.Lacks(promised); len(lacking) > 0 {
		return fmt.Errorf("%w: %s", ErrPromise, strings.Join(lacking, ", "))
	}
	return nil
}

// Seal installs seccomp filter B: afterwards no machine code can be added to this process,
// no file opened and no descriptor received. The worker calls it once, with all compiled
// code loaded and before it instantiates the guest. It returns the isolation that the run
// reports.
func (i *Inside) Seal() (Isolation, error) {
	if i.isolation.Seccomp != SeccompLoad {
		return i.isolation, i.settle()
	}
	err := installFilter(filterB(os.Getpid()))
	if err == nil {
		i.isolation.Seccomp = SeccompStrict
		i.isolation = i.isolation.judged()
	}
	if i.promised != nil && i.promised.Seccomp == SeccompStrict && err != nil {
		return i.isolation, fmt.Errorf("%w: seal: %w", ErrPromise, err)
	}
	return i.isolation, nil
}

// closeOthers closes every descriptor above [DirFD] that could lead anywhere. It keeps the
// Go runtime's poller and event counter, the only descriptors without a file type.
// Descriptors are assigned lowest first, so a new process has none of its own above nearby.
func closeOthers() error {
	const nearby = 64
	for fd := DirFD + 1; fd < nearby; fd++ {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT == 0 {
			continue
		}
		closeFD(fd)
	}
	err := unix.CloseRange(nearby, math.MaxInt32, 0)
	if errors.Is(err, unix.ENOSYS) {
		return nil // before Linux 5.9 only close-on-exec protects them
	}
	return err
}
