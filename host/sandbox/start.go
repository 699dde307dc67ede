package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/patience"
)

const (
	noCPULimit   = 365 * 24 * time.Hour // stands for no compute limit
	callsPending = abi.CreditFrames + 1 // emits in flight, and the one other call
)

// A Spec says what guest to start.
type Spec struct {
	// Name becomes args[0]; Env is the guest's whole environment.
	Name string
	Env  []string
	// Code is what Prepare made of Wasm. Wasm itself is needed by the interpreter, and to compile again if the cache
	// entry is damaged or gone.
	Module Module
	Wasm   []byte
	Code   Code
	// Mounts are the virtual directories.
	Mounts []abi.Mount
	// MemoryBytes limits linear memory, 0 for the default; Compute limits CPU time, 0 for no limit.
	MemoryBytes uint64
	Compute     time.Duration
	// Interpreter runs the module without compiled code, about 70 times slower. It is for conformance tests, not a
	// fallback.
	Interpreter bool
	// Fixed makes the guest's clock and random numbers repeatable; nil means real ones.
	Fixed *abi.Fixed
}

// Start prepares a guest up to its first instruction: the code is loaded and the jail is closed, but nothing of the
// guest has run. The caller makes run.started durable and calls [Guest.Go]. ctx limits the start only. The error is a
// *Failure if the module cannot run, and ErrIsolationBroken after Probe found a hole.
func (s *Sandbox) Start(ctx context.Context, spec Spec) (*Guest, error) {
	spec.MemoryBytes = cmp.Or(spec.MemoryBytes, defaultMemory)
	if spec.MemoryBytes > maxMemory {
		return nil, &Failure{Code: CodeWorkerFailed,
			Detail: fmt.Sprintf("guest.memory of %d bytes is over %d", spec.MemoryBytes, uint64(maxMemory))}
	}
	if s.broken.Load() {
		return nil, ErrIsolationBroken
	}
	g, err := s.start(ctx, spec)
	switch {
	case errors.Is(err, errBadEntry):
		s.cache.drop(spec.Code.key, err)
	case !errors.Is(err, errForgotten):
		return g, err
	}
	if spec.Code, err = s.Prepare(ctx, spec.Module, spec.Wasm); err != nil {
		return nil, err
	}
	g, err = s.start(ctx, spec)
	if errors.Is(err, errBadEntry) || errors.Is(err, errForgotten) {
		return nil, &Failure{Code: CodeEngineUnavailable, Detail: err.Error()}
	}
	return g, err
}

func (s *Sandbox) start(ctx context.Context, spec Spec) (*Guest, error) {
	files, size, err := s.material(spec)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, f := range files {
			_ = f.Close() // the worker has its own
		}
	}()
	began := time.Now()
	limits := s.runLimits(spec, size)
	var g *Guest
	err = s.withBlank(ctx, func(b *blank) (err error) {
		if g, err = s.prepareBlank(ctx, b, spec, limits, files); err != nil {
			return errors.Join(startFailure(err), b.close())
		}
		g.steps.Spawn, g.steps.Ready = b.spawn, time.Since(began)
		return nil
	})
	if err != nil {
		return nil, err
	}
	go g.pump()
	return g, nil
}

// material opens the worker's files: the module if it is interpreted, else what cache.open returns.
func (s *Sandbox) material(spec Spec) (files []*os.File, codeBytes int64, err error) {
	if spec.Interpreter {
		module, err := jail.MemFD("module", spec.Wasm)
		if err != nil {
			return nil, 0, launchFailure(err)
		}
		return []*os.File{module}, int64(len(spec.Wasm)) * 8, nil
	}
	return s.cache.open(spec.Code)
}

func (s *Sandbox) runLimits(spec Spec, codeBytes int64) jail.Limits {
	compute := spec.Compute
	if compute <= 0 {
		compute = noCPULimit
	}
	limits := jail.RunLimits(spec.MemoryBytes, uint64(codeBytes), compute)
	extra := s.options.DataBytes - 384*mebibyte
	limits.DataBytes += extra
	limits.AddressBytes += extra
	return limits
}

// prepareBlank turns a blank into a guest.
func (s *Sandbox) prepareBlank(ctx context.Context, b *blank, spec Spec, limits jail.Limits,
	files []*os.File) (*Guest, error) {
	ready, id, err := s.assign(ctx, b, abi.Load{
		Task: abi.TaskRun, Interpreter: spec.Interpreter, Stdio: spec.Module.Transport == TransportStdio,
		MemoryPages: uint32(spec.MemoryBytes / PageBytes), Limits: s.options.Limits,
		Name: spec.Name, Env: spec.Env, Mounts: spec.Mounts, Fixed: spec.Fixed,
	}, limits, files)
	if err != nil {
		return nil, err
	}
	isolation := jail.Isolation(ready.Isolation)
	if s.options.Require != "" && !isolation.Meets(s.options.Require) {
		return nil, &Failure{Code: CodeIsolationUnavailable,
			Detail: fmt.Sprintf("isolation is %s, %s is required", isolation.Level, s.options.Require)}
	}
	return &Guest{
		process: b.process, channel: b.channel, limits: limits, isolation: isolation,
		readyCPU: ready.CPU, readyID: id,
		calls: make(chan Inbound, callsPending), killed: make(chan struct{}),
		rate:    newBucket(s.options.CallsPerSecond, s.options.CallBurst),
		waiting: abi.CallReady, waitingID: id,
		frames: abi.CreditFrames, bytes: abi.CreditBytes,
		steps: Steps{Enter: ready.Enter, Load: ready.Load, CPU: ready.CPU},
	}, nil
}

// assign sends a task to a blank worker. It returns the worker's ready message and that message's ID, or why the worker
// did not become ready.
func (s *Sandbox) assign(ctx context.Context, b *blank, l abi.Load, limits jail.Limits,
	files []*os.File) (abi.Ready, uint32, error) {
	l.Directory = len(files) > 1
	config, err := b.process.Config(limits)
	if err != nil {
		return abi.Ready{}, 0, launchFailure(err)
	}
	config.Promised, config.Writable = s.probed.Load(), l.Task == abi.TaskCompile
	if l.Jail, err = json.Marshal(config); err != nil {
		return abi.Ready{}, 0, launchFailure(err)
	}
	if err := b.channel.load(l, files...); err != nil {
		return abi.Ready{}, 0, fmt.Errorf("%w: %w%s", errBlankLost, err, b.stderrTail())
	}
	release := deadline(ctx, b.process.Socket, patience.For(s.options.CompileWall))
	defer release()
	h, buf, err := b.channel.next()
	if err != nil {
		return abi.Ready{}, 0, s.explainLoss(ctx, b, limits, err)
	}
	defer giveBuffer(buf)
	payload := buf.b[:h.Length]
	switch h.Call {
	case abi.CallReady:
		ready, err := abi.ParseReady(payload)
		if err != nil {
			return ready, 0, launchFailure(err)
		}
		return ready, h.ID, nil
	case abi.CallExit:
		exit, err := abi.ParseExit(payload)
		if err != nil {
			return abi.Ready{}, 0, launchFailure(err)
		}
		if exit.Kind == abi.ExitDone {
			return abi.Ready{}, h.ID, nil
		}
		return abi.Ready{}, 0, stageFailure(exit)
	}
	return abi.Ready{}, 0, launchFailure(fmt.Errorf("%w: call %d before ready", abi.ErrWire, h.Call))
}

// explainLoss explains why a worker ended or hung before it was ready.
func (s *Sandbox) explainLoss(ctx context.Context, b *blank, limits jail.Limits, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", errSlow, err)
	}
	if errors.Is(err, abi.ErrWire) {
		return launchFailure(err)
	}
	if errors.Is(err, syscall.ECONNRESET) { // its task was never read
		return fmt.Errorf("%w: %w%s", errBlankLost, err, b.stderrTail())
	}
	timer := time.AfterFunc(endGrace, func() { _ = b.process.Kill() })
	defer timer.Stop()
	exit, waitErr := b.process.Wait()
	if waitErr != nil {
		return launchFailure(waitErr)
	}
	switch exit.Cause(limits) {
	case jail.CauseMemory:
		return errMemory
	case jail.CauseCPU:
		return errSlow
	}
	return launchFailure(fmt.Errorf("worker ended before it was ready: %w%s", err, b.stderrTail()))
}

// How a worker can fail at its limits before a guest runs.
var (
	errSlow   = errors.New("worker took too long")
	errMemory = errors.New("worker ran out of memory")
)

// startFailure makes a *Failure of a limit that a worker reached while it started a guest.
func startFailure(err error) error {
	if errors.Is(err, errSlow) || errors.Is(err, errMemory) {
		return &Failure{Code: CodeWorkerFailed, Detail: err.Error() + busyNote(err)}
	}
	return err
}

// busyNote returns a note that the machine was busy, if the worker took too long.
func busyNote(err error) string {
	if busy := patience.Busy(); busy != "" && errors.Is(err, errSlow) {
		return ": " + busy
	}
	return ""
}

// launchFailure wraps err in a *Failure, except errors that callers handle themselves.
func launchFailure(err error) error {
	var f *Failure
	switch {
	case errors.As(err, &f), errors.Is(err, errBadEntry), errors.Is(err, ErrClosed),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &Failure{Code: CodeWorkerFailed, Detail: err.Error()}
}
