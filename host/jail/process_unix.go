//go:build linux || darwin || freebsd || netbsd || openbsd

package jail

import (
	"os"
	"syscall"
)

// Suspend stops the worker where it is, for a paused run; it uses no CPU until
// [Process.Resume]. A suspended worker can be killed.
func (p *Process) Suspend() error { return p.signal(syscall.SIGSTOP, "suspend") }

// Resume lets a suspended worker go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT, "resume") }

func (p *Process) signal(s os.Signal, verb string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return ignoreDone(p.handle.Signal(s), verb)
}

const signalCPU = syscall.SIGXCPU

// exitOf translates what the system says about a reaped process.
func exitOf(state *os.ProcessState) Exit {
	e := Exit{Code: state.ExitCode(), User: state.UserTime(), System: state.SystemTime()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		e.PeakMemory = uint64(usage.Maxrss) * maxrssUnit
	}
	return e
}

// ownPeak is the largest resident set this process ever had, in bytes.
func ownPeak() uint64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return uint64(usage.Maxrss) * maxrssUnit
}
