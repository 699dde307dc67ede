package sandbox

import (
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/abi"
)

// The codes of a [Failure]: why there is no running guest (S37, S41, S14).
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

// A Failure says why a module could not be prepared or a worker not started.
// Detail may hold text that the module's author chose: it is data.
type Failure struct {
	Code   string
	Detail string
}

// Error says what failed and why.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %s", f.Code, f.Detail)
}

// errBadEntry marks a start that failed for its compiled code: the entry is to
// be dropped and made anew (S39).
var errBadEntry = errors.New("compiled code is missing or damaged")

// errForgotten marks a start for which this process has not verified compiled
// code, or no longer holds it open. It says nothing against the entry.
var errForgotten = errors.New("compiled code is not prepared")

// stageFailure translates the failure that a worker reported of itself.
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
