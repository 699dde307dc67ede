package sandbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
)

// An ExitKind says how a guest ended.
type ExitKind string

const (
	// ExitExited: the guest exited with a code.
	ExitExited ExitKind = "exited"
	// ExitTrapped: the guest trapped; see Exit.TrapKind.
	ExitTrapped ExitKind = "trapped"
	// ExitKilled: the host called Kill, and has recorded the reason before.
	ExitKilled ExitKind = "killed"
	// ExitMemory: the worker reached its memory limit; memory_limit_exceeded.
	ExitMemory ExitKind = "memory_limit"
	// ExitCPU: the worker reached its CPU limit; run_timed_out, deadline compute.
	ExitCPU ExitKind = "cpu_limit"
	// ExitViolation: the worker made a forbidden system call; worker_lost, jail_violation.
	ExitViolation ExitKind = "jail_violation"
	// ExitCrashed: anything else; worker_lost, worker_crashed.
	ExitCrashed ExitKind = "crashed"
	// ExitProtocol: the worker broke the wire protocol; worker_protocol_error.
	ExitProtocol ExitKind = "protocol_error"
)

// Usage is what a guest has used so far, or in total.
type Usage struct {
	CPU              time.Duration // user and system, without startup
	MemoryBytes      uint64        // resident, of the whole worker; 0 if unknown, and at the end
	PeakMemoryBytes  uint64        // largest MemoryBytes
	GuestMemoryBytes uint64        // peak linear memory; known at the end, 0 if the worker was killed
	HostCalls        uint64
	BytesIn          uint64 // payloads from the guest
}

// An Exit is how a guest ended.
type Exit struct {
	Kind     ExitKind
	Code     uint32 // of ExitExited
	TrapKind string // of ExitTrapped, one of the abi's
	// Detail is for diagnostics. It may contain the engine's text with names that the guest
	// chose, or the end of the worker's stderr.
	Detail string
	Usage  Usage
	Steps  Steps
}

// Exit returns how the guest ended. It is final once Calls is closed.
func (g *Guest) Exit() Exit {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.exit
}

// Usage samples what the guest has used. It is cheap enough for ten calls a second.
func (g *Guest) Usage() Usage {
	var u Usage
	if cpu, err := g.process.CPU(); err == nil {
		u.CPU = max(0, cpu-g.readyCPU)
	}
	resident, peak, _ := g.process.Memory() // it is gone, or was seen before
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peak = max(g.peak, peak)
	u.MemoryBytes, u.PeakMemoryBytes = resident, g.peak
	u.HostCalls, u.BytesIn = g.hostCalls, g.bytesIn
	if g.exitReport != nil {
		u.GuestMemoryBytes = g.exitReport.GuestMemoryBytes
	}
	return u
}

// finish waits for the worker's end and determines how it ended.
func (g *Guest) finish() {
	process, err := g.process.Wait()
	_ = g.process.Socket.Close() // nothing is read or written any more
	usage := g.Usage()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.exit = Exit{Usage: usage, Steps: g.steps}
	if err != nil {
		g.exit.Kind, g.exit.Detail = ExitCrashed, err.Error()
		return
	}
	g.settle(process)
}

// settle determines how the guest ended. The caller holds mu.
func (g *Guest) settle(process jail.Exit) {
	e := &g.exit
	cause := process.Cause(g.limits)
	switch {
	case g.fault != nil:
		e.Kind, e.Detail = ExitProtocol, g.fault.Error()
	case g.stopped:
		e.Kind = ExitKilled
	case g.exitReport != nil && (cause == jail.CauseExited || cause == jail.CauseKilled):
		g.applyExitReport(*g.exitReport)
	case cause == jail.CauseMemory:
		e.Kind, e.Detail = ExitMemory, string(process.Stderr)
	case cause == jail.CauseCPU:
		e.Kind = ExitCPU
	case cause == jail.CauseViolation:
		e.Kind, e.Detail = ExitViolation, string(process.Stderr)
	default:
		e.Kind, e.Detail = ExitCrashed, string(process.Stderr)
	}
}

// applyExitReport uses the worker's own report of an orderly exit.
func (g *Guest) applyExitReport(last abi.Exit) {
	e := &g.exit
	e.Code, e.Detail = last.Code, last.Detail
	switch last.Kind {
	case abi.ExitExited:
		e.Kind = ExitExited
	case abi.ExitTrapped:
		e.Kind, e.TrapKind = ExitTrapped, trapKind(last.TrapKind)
	default:
		e.Kind = ExitCrashed
		if last.TrapKind == abi.StageMemory {
			e.Kind = ExitMemory
		}
	}
}

// trapKind restricts kind to the known values, because the worker is untrusted.
func trapKind(kind string) string {
	switch kind {
	case abi.TrapUnreachable, abi.TrapMemory, abi.TrapInteger, abi.TrapIndirectCall, abi.TrapStack:
		return kind
	}
	return abi.TrapOther
}

// The codes of a [Failure], which says why no guest is running.
const (
	CodeCompileTimeout       = "module_compile_timeout"
	CodeCompileMemory        = "module_compile_memory"
	CodeCompileFailed        = "module_compile_failed"
	CodeEngineUnavailable    = "engine_unavailable"
	CodeIsolationUnavailable = "isolation_unavailable"
	CodeWorkerFailed         = "worker_start_failed"
)

// ErrClosed is returned after the sandbox was closed.
var ErrClosed = errors.New("sandbox is closed")

// ErrGone is returned by calls on a guest whose worker has ended.
var ErrGone = errors.New("worker is gone")

// ErrNoCall is returned by a reply to a call that is not waiting for one.
var ErrNoCall = errors.New("no such call is waiting")

// A Failure says why a module could not be prepared or a worker not started. Detail is untrusted: it may contain text
// that the module's author chose.
type Failure struct {
	Code   string
	Detail string
}

// Error says what failed and why.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %s", f.Code, f.Detail)
}

// errBadEntry marks a start that failed because of its compiled code: the entry must be
// dropped and made again.
var errBadEntry = errors.New("compiled code is missing or damaged")

// errForgotten marks a start for which this process has not verified the compiled code, or
// no longer holds it open. The entry may be good.
var errForgotten = errors.New("compiled code is not prepared")

// stageFailure translates the failure that a worker reports about itself.
func stageFailure(e abi.Exit) error {
	switch e.TrapKind {
	case abi.StageIsolation:
		return &Failure{Code: CodeIsolationUnavailable, Detail: e.Detail}
	case abi.StageEngine:
		return &Failure{Code: CodeEngineUnavailable, Detail: e.Detail}
	case abi.StageModule:
		return &Failure{Code: CodeCompileFailed, Detail: e.Detail}
	case abi.StageCode:
		return fmt.Errorf("%w: %s", errBadEntry, e.Detail)
	}
	return &Failure{Code: CodeWorkerFailed, Detail: e.Detail}
}
