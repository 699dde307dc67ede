package jail

import (
	"bytes"
	"syscall"
	"time"
)

// Cause is the reason why a worker ended, according to its process.
type Cause string

// The causes, from which host/run derives a run's reason. A worker that ended without a
// usage report is lost, whatever its cause.
const (
	CauseKilled    Cause = "killed"         // by the host, which has recorded the run's reason
	CauseExited    Cause = "exited"         // of its own accord, status 0
	CauseMemory    Cause = "memory_limit"   // at its memory limit, according to the kernel or its runtime
	CauseCPU       Cause = "cpu_limit"      // at its CPU limit
	CauseViolation Cause = "jail_violation" // for a forbidden system call
	CauseCrashed   Cause = "crashed"        // anything else, including a SIGKILL from elsewhere
)

// Exit describes how a worker ended and what it used.
type Exit struct {
	// Code is the exit status, -1 after a signal.
	Code int
	// Signal is the signal that ended it, 0 for none.
	Signal syscall.Signal
	// Killed means that the host had sent SIGKILL before it saw the end.
	Killed bool
	// OutOfMemory means that the kernel ended the worker at the limit of its control group.
	OutOfMemory bool
	// User and System are CPU time.
	User, System time.Duration
	// PeakMemory is the largest resident set in bytes, 0 if unknown.
	PeakMemory uint64
	// Stderr is the end of its diagnostics, which the guest's side never sees.
	Stderr []byte
	// head is the beginning of its diagnostics, where a crashing runtime states the reason.
	head []byte
}

// CPU returns the total CPU time.
func (e Exit) CPU() time.Duration { return e.User + e.System }

// Cause classifies the end of a worker that ran under limits.
func (e Exit) Cause(limits Limits) Cause {
	switch {
	case e.Killed:
		return CauseKilled
	case e.Signal == signalViolation && e.Signal != 0:
		return CauseViolation
	case e.Signal == signalCPU && e.Signal != 0, e.Signal == syscall.SIGKILL && limits.CPU > 0 &&
		e.CPU() >= limits.CPU-time.Second/2:
		return CauseCPU
	case e.Code == 0:
		return CauseExited
	case e.OutOfMemory, e.Signal != syscall.SIGKILL && e.outOfMemory(limits.DataBytes):
		return CauseMemory
	}
	return CauseCrashed
}

// memorySigns lists messages of a runtime without memory. The last one is from a cgo build that cannot allocate the
// stack of a thread.
var memorySigns = []string{"out of memory", "cannot allocate memory", "pthread_create failed"}

// outOfMemory reports whether a crash was probably caused by the memory limit: the runtime says so, or memory use was
// within a tenth of the limit, where the runtime may fail in unusual ways.
func (e Exit) outOfMemory(wall uint64) bool {
	if wall > 0 && e.PeakMemory >= wall-wall/10 {
		return true
	}
	for _, text := range [][]byte{e.head, e.Stderr} {
		for _, sign := range memorySigns {
			if bytes.Contains(text, []byte(sign)) {
				return true
			}
		}
	}
	return wall > 0 && (e.PeakMemory == 0 || e.PeakMemory >= wall/4) && e.runtimeFault()
}

// runtimeFault reports whether the innermost frame of a crash belongs to the runtime, such as a collector after a
// failed allocation. The limit is on what is mapped, of which a growing heap or table has touched little: a compilation
// failed with a third of it resident. So a quarter of the limit counts as close then, as does an unknown peak.
func (e Exit) runtimeFault() bool {
	said := e.head
	if len(said) == 0 {
		said = e.Stderr
	}
	_, trace, found := bytes.Cut(said, []byte("\ngoroutine "))
	_, frame, ok := bytes.Cut(trace, []byte(":\n"))
	return found && ok && bytes.HasPrefix(frame, []byte("runtime."))
}
