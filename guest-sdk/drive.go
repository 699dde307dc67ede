package guest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// Exit codes of a connector, which must agree with the status of DONE.
const (
	exitSucceeded = 0
	exitFailed    = 1
)

// drive performs one run and returns the exit code.
func drive(ctx context.Context, c Connector, p port) int {
	reply, err := p.start()
	if err != nil {
		return exitFailed
	}
	start, err := decodeStart(reply)
	if err != nil {
		return exitFailed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := newRun(p, start, cancel, c.Verbatim)
	return finish(ctx, r, collect(ctx, r, c))
}

// collect runs the connector's code. A panic becomes an error, and its stack is logged.
func collect(ctx context.Context, r *Run, c Connector) (err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := make([]byte, 16*abi.KiB)
			stack = stack[:runtime.Stack(stack, false)]
			err = &reportedFailure{code: "panic", err: fmt.Errorf("panic: %v%s", p, panicPlace())}
			_ = r.logLine(slog.LevelError, abi.Cut(err.Error(), maxErrorMessage), NewRecord().String("stack", string(stack)))
		}
	}()
	if c.Collect == nil {
		return errors.New("guest: the connector has no Collect function")
	}
	return c.Collect(ctx, r)
}

// The prefixes of names of the SDK's own functions.
const (
	sdk     = "github.com/sluicehost/sluice/guest-sdk."
	encoder = "github.com/sluicehost/sluice/guest-sdk/encode."
)

// panicPlace returns the place of the current panic in the connector: the innermost line
// outside of the Go runtime and the SDK.
func panicPlace() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicked := false
	for {
		f, more := frames.Next()
		own := strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, sdk) ||
			strings.HasPrefix(f.Function, encoder)
		if panicked && !own {
			return " at " + path.Join(path.Base(path.Dir(f.File)), path.Base(f.File)) + ":" + strconv.Itoa(f.Line)
		}
		panicked = panicked || f.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}

// finish sends the remaining records and DONE.
func finish(ctx context.Context, r *Run, result error) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.flush(); err != nil && result == nil {
		result = err
	}
	if errors.Is(r.fatal, abi.EPROTO) {
		return exitFailed // the host has ended the run: DONE has no effect
	}
	status, fault := abi.Succeeded, (*abi.DoneError)(nil)
	switch {
	case ctx.Err() != nil:
		status = abi.Cancelled
	case result != nil:
		status, fault = abi.Failed, doneError(result)
	}
	if _, err := r.port.done(appendDone(nil, status, r.emitted, fault)); err != nil || status != abi.Succeeded {
		return exitFailed
	}
	return exitSucceeded
}

// appendDone appends a DONE. It does without the encoder, so that connectors that do not
// use the encoder need not link it.
func appendDone(b []byte, status string, emitted int64, e *abi.DoneError) []byte {
	b = strictjson.AppendQuote(append(b, `{"status":`...), status)
	b = strconv.AppendInt(append(b, `,"records_emitted":`...), emitted, 10)
	if e == nil {
		return append(b, '}')
	}
	b = strictjson.AppendQuote(append(b, `,"error":{"message":`...), e.Message)
	if e.Code != "" {
		b = strictjson.AppendQuote(append(b, `,"code":`...), e.Code)
	}
	if e.Retryable != nil {
		b = strconv.AppendBool(append(b, `,"retryable":`...), *e.Retryable)
	}
	if e.RecoveryHint != nil {
		b = append(strictjson.AppendQuote(append(b, `,"recovery_hint":{"action":`...), e.RecoveryHint.Action), '}')
	}
	return append(b, '}', '}')
}
