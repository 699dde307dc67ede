package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"

	"github.com/sluicehost/sluice/abi"
)

// run loads the code, seals the jail, waits for the host's permission, and runs the guest.
func (w *worker) run(ctx context.Context, module []byte) (abi.Exit, error) {
	began := time.Now()
	g := &guest{relay: w.relay, clock: newClock(), random: rand.Reader, stdio: w.load.Stdio}
	if f := w.load.Fixed; f != nil {
		g.clock, g.random, g.skipSleeps = newFixedClock(f), mathrand.NewChaCha8(f.Seed), f.Instant
		if f.Told {
			w.relay.onTime = g.clock.setTime
		}
	}
	runtime, code, err := w.prepare(ctx, g, module)
	if err != nil {
		return abi.Exit{}, err
	}
	isolation, err := w.walls.Seal()
	if err != nil {
		return abi.Exit{}, stage(abi.StageIsolation, err)
	}
	w.ready.Load = time.Since(began)
	w.ready.CPU = processCPU()
	w.ready.Isolation = abi.Isolation(isolation)
	if _, errno := w.relay.call(abi.CallReady, w.ready.Append(nil)); errno != abi.OK {
		return abi.Exit{}, stage(abi.StageEngine, fmt.Errorf("the host called the run off: %w", errno))
	}
	return w.execute(ctx, runtime, code, g), nil
}

// prepare does everything that requires new machine code or files.
func (w *worker) prepare(ctx context.Context, g *guest, module []byte) (wazero.Runtime, wazero.CompiledModule, error) {
	cfg, err := engineConfig(w.load.Interpreter, max(w.load.MemoryPages, 1))
	if err != nil {
		return nil, nil, stage(abi.StageEngine, err)
	}
	if !w.load.Interpreter {
		cache, err := wazero.NewCompilationCacheWithDir(w.walls.Dir)
		if err != nil {
			return nil, nil, stage(abi.StageCode, err)
		}
		cfg = cfg.WithCompilationCache(cache)
	}
	r, err := newRuntime(ctx, cfg)
	if err != nil {
		return nil, nil, stage(abi.StageEngine, err)
	}
	if err := g.instantiateImports(ctx, r); err != nil {
		return nil, nil, stage(abi.StageEngine, err)
	}
	if w.load.Interpreter {
		code, err := r.CompileModule(ctx, module)
		if err != nil {
			return nil, nil, stage(abi.StageModule, err)
		}
		return r, code, nil
	}
	code, err := loadCode(ctx, r, module, w.walls.Dir)
	if err != nil {
		return nil, nil, stage(abi.StageCode, err)
	}
	return r, code, nil
}

// execute instantiates and runs the guest. After a trap it calls nothing more.
func (w *worker) execute(ctx context.Context, r wazero.Runtime, code wazero.CompiledModule, g *guest) abi.Exit {
	began := time.Now()
	instance, err := r.InstantiateModule(withAllocator(ctx, &w.peak), code, w.instanceConfig(g))
	took := time.Since(began)
	if err == nil {
		start := instance.ExportedFunction("_start")
		if start == nil {
			return failure(stage(abi.StageModule, errors.New("the module exports no _start")))
		}
		_, err = start.Call(ctx)
	}
	g.flushLine()
	exit := exitOf(err)
	exit.Instantiate = took
	return exit
}

// instanceConfig sets all interfaces to the outside world explicitly, because the engine's defaults are fakes.
func (w *worker) instanceConfig(g *guest) wazero.ModuleConfig {
	step := sys.ClockResolution(clockStep)
	cfg := wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions().
		WithArgs(w.load.Name).
		WithRandSource(g.random).
		WithWalltime(g.clock.wall, step).
		WithNanotime(g.clock.nano, step).
		WithNanosleep(func(ns int64) { g.sleep(time.Duration(ns)) }).
		WithStderr(&diagnostics{guest: g, fd: 2}).
		WithFSConfig(w.mounts(g))
	for _, variable := range w.load.Env {
		name, value, _ := strings.Cut(variable, "=")
		cfg = cfg.WithEnv(name, value)
	}
	if g.stdio {
		return cfg.WithStdin(stdin{g}).WithStdout(stdout{g})
	}
	return cfg.WithStdout(&diagnostics{guest: g, fd: 1})
}

// mounts returns the approved directories.
func (w *worker) mounts(g *guest) wazero.FSConfig {
	cfg := wazero.NewFSConfig()
	for _, m := range w.load.Mounts {
		if with, ok := cfg.(sysfs.FSConfig); ok {
			cfg = with.WithSysFSMount(newRemoteFS(g.relay, m.ID), m.Path)
		}
	}
	return cfg
}

// exitOf converts the result of _start, or of instantiation, to an exit.
func exitOf(err error) abi.Exit {
	var left *sys.ExitError
	switch {
	case err == nil:
		return abi.Exit{Kind: abi.ExitExited}
	case errors.As(err, &left):
		return abi.Exit{Kind: abi.ExitExited, Code: left.ExitCode()}
	default:
		return abi.Exit{Kind: abi.ExitTrapped, TrapKind: trapKind(err), Detail: err.Error()}
	}
}

// trapKind classifies a trap by the engine's own text, which is the innermost error. The texts around it contain names
// chosen by the guest.
func trapKind(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	switch text := err.Error(); {
	case text == "unreachable":
		return abi.TrapUnreachable
	case text == "out of bounds memory access", strings.HasPrefix(text, "data[") &&
		strings.Contains(text, "out of bounds"):
		return abi.TrapMemory
	case text == "integer overflow", text == "integer divide by zero", text == "invalid conversion to integer":
		return abi.TrapInteger
	case text == "invalid table access", text == "indirect call type mismatch":
		return abi.TrapIndirectCall
	case text == "stack overflow":
		return abi.TrapStack
	}
	return abi.TrapOther
}
