package jail

import (
	"bytes"
	"syscall"
	"time"
)

// Cause is why a worker ended, judged by its process.
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

// Exit is how a worker ended and what it used.
type Exit struct {
	// Code is the exit status, -1 after a signal.
	Code int
	// Signal that ended it, 0 if none did.
	Signal syscall.Signal
	// Killed: the host had sent SIGKILL before the end was seen.
	Killed bool
	// OutOfMemory: the kernel says that it ended the worker at the limit of its control group.
	OutOfMemory bool
	// User and System are CPU time.
	User, System time.Duration
	// PeakMemory is the largest resident set, in bytes, 0 where it is not known.
	PeakMemory uint64
	// Stderr is the end of its diagnostics, never shown to the guest's side.
	Stderr []byte
	// head is the beginning of its diagnostics, where a dying runtime gives the reason.
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
	case e.Signal == signalCPU && e.Signal != 0, e.Signal == syscall.SIGKILL && limits.CPU > 0 && e.CPU() >= limits.CPU-time.Second/2:
		return CauseCPU
	case e.Code == 0:
		return CauseExited
	case e.OutOfMemory, e.Signal != syscall.SIGKILL && e.outOfMemory(limits.DataBytes):
		return CauseMemory
	}
	return CauseCrashed
}

// memorySigns are messages of the runtime without memory; the last is for a thread of a cgo
// build without a stack.
var memorySigns = []string{"out of memory", "cannot allocate memory", "pthread_create failed"}

// outOfMemory reports whether a crash looks like the memory limit: the runtime says so, or
// memory was within a tenth of it, where the runtime may fail in unusual ways.
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
	return wall > 0 && (e.PeakMemory == 0 || e.PeakMemory >= wall/2) && e.runtimeFault()
}

// runtimeFault reports whether the innermost frame of the crash is the runtime's
// own, such as a collector that met a failed allocation. Memory that is asked for
// in one piece, as a growing table is, may be refused long before it is resident,
// so half of the wall is near enough then, and so is a peak that nobody measured before
// the worker died.
func (e Exit) runtimeFault() bool {
	said := e.head
	if len(said) == 0 {
		said = e.Stderr
	}
	_, trace, found := bytes.Cut(said, []byte("\ngoroutine "))
	_, frame, ok := bytes.Cut(trace, []byte(":\n"))
	return found && ok && bytes.HasPrefix(frame, []byte("runtime."))
}
