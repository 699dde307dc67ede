//go:build darwin || freebsd || netbsd || openbsd

package jail

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Inside is a worker in its jail.
type Inside struct {
	// Dir is the path at which the worker finds its directory, "" if it has none.
	Dir string

	isolation Isolation
}

// Isolation returns the level "process".
func (i *Inside) Isolation() Isolation { return i.isolation }

// Prepare does nothing on this system.
func Prepare() {}

// Enter sets the limits that the system honors. dir is the open directory that the worker may see, or [NoDir]. The
// worker watches its memory itself, because address-space limits are unreliable here. Enter returns [ErrPromise] if cfg
// requires more than a process, and [ErrOrphan] if the host is gone.
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

// Conceal forbids core files of the calling process, a host, and its children.
func Conceal() error { return setLimit(unix.RLIMIT_CORE, 0) }

// watchMemory checks the size of the process every 100 ms and ends it if it is too large.
func watchMemory(most uint64) {
	for range time.Tick(100 * time.Millisecond) {
		var usage unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err == nil && residentBytes(usage.Maxrss) > most {
			_, _ = os.Stderr.WriteString("worker: out of memory\n") // the exit status says so, too
			os.Exit(2)
		}
	}
}

// The runtime turns a write to a closed socket into an error, and received
// descriptors are closed on exec right after they arrive.
const (
	noSignal    = 0
	closeOnExec = 0
)

func duplicateTo(from, to int) error {
	if err := unix.Dup2(from, to); err != nil {
		return err
	}
	unix.CloseOnExec(to)
	return nil
}

// socketPair makes the channel between host and worker. The host's end is non-blocking, the worker's end is blocking.
func socketPair() (host, worker *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[1]), "host"), fds[0]
	if err := unix.SetNonblock(theirs, true); err != nil {
		_ = ours.Close() // never used
		_ = unix.Close(theirs)
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	return os.NewFile(uintptr(theirs), "worker"), ours, nil
}

// A namespaceSet is empty, because this system has no namespaces.
type namespaceSet struct{}

func (namespaceSet) names() []string { return []string{} }

func ownUIDs(first, last, gid int) bool { return false }

func (l *Launcher) negotiate() (namespaceSet, error) { return namespaceSet{}, nil }

// An executable is the path of a program. If the file changes, the build id in the worker's first message reveals it.
type executable struct{ path string }

func openExecutable(path string) (*executable, error) {
	if path != "" {
		return &executable{path: path}, nil
	}
	path, err := os.Executable()
	return &executable{path: path}, err
}

func (e *executable) close() error { return nil }

func (e *executable) start(args, env []string, files []*os.File, _ namespaceSet) (*os.Process, error) {
	process, err := os.StartProcess(e.path, append([]string{"sluice"}, args...),
		&os.ProcAttr{Env: env, Files: files, Dir: "/", Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", e.path, err)
	}
	return process, nil
}

// yieldPriority does nothing, because here a priority applies to the whole process.
func yieldPriority() {}

const signalViolation = syscall.SIGSYS

// await waits for the end of the worker and reaps it.
func (p *Process) await() (*os.ProcessState, error) {
	state, err := p.handle.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	return state, err
}

// processCPU would need cgo here. The worker's own CPU limit is the backstop.
func processCPU(int) (time.Duration, error) { return 0, ErrUnsupported }

func processMemory(int) (resident, peak uint64, err error) { return 0, 0, ErrUnsupported }

// setLimit sets both the soft and the hard limit.
func setLimit(resource int, value uint64) error {
	var limit unix.Rlimit
	assign(&limit.Cur, value)
	assign(&limit.Max, value)
	return unix.Setrlimit(resource, &limit)
}

// assign assigns value to a number whose type differs between systems.
func assign[T int64 | uint64](to *T, value uint64) { *to = T(value) }
