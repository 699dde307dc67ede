package guest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/sluicehost/sluice/abi"
)

// Exit codes of a connector (G19): they agree with the status of DONE.
const (
	exitSucceeded = 0
	exitFailed    = 1
)

// drive does one run and returns the exit code.
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
	r := newRun(p, start, cancel)
	return r.finish(ctx, r.collect(ctx, c))
}

// collect runs the connector's own code. A panic becomes an error, its stack a
// line of the log.
func (r *Run) collect(ctx context.Context, c Connector) (err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := make([]byte, 16*abi.KiB)
			stack = stack[:runtime.Stack(stack, false)]
			err = &reportedFailure{code: "panic", err: fmt.Errorf("panic: %v", p)}
			_ = r.logLine(slog.LevelError, abi.Cut(err.Error(), maxErrorMessage), NewRecord().String("stack", string(stack)))
		}
	}()
	if c.Collect == nil {
		return errors.New("guest: the connector has no Collect function")
	}
	return c.Collect(ctx, r)
}

// finish sends the rest of the records and DONE.
func (r *Run) finish(ctx context.Context, result error) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.flush(); err != nil && result == nil {
		result = err
	}
	if errors.Is(r.ended, abi.EPROTO) {
		return exitFailed // the host has ended the run: DONE has no effect
	}
	done := abi.DoneMessage{Status: abi.Succeeded, RecordsEmitted: &r.emitted}
	switch {
	case ctx.Err() != nil:
		done.Status = abi.Cancelled
	case result != nil:
		done.Status, done.Error = abi.Failed, doneError(result)
	}
	b, err := appendJSON(nil, &done)
	if err != nil {
		return exitFailed
	}
	if _, err := r.port.done(b); err != nil || done.Status != abi.Succeeded {
		return exitFailed
	}
	return exitSucceeded
}
