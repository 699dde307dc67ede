package app

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/patience"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/host/worker"
)

// guests compiles modules and runs them, each in a jail of its own.
type guests struct {
	*directory
	Sandbox   *sandbox.Sandbox // nil until openSandbox, and of a host that was opened with NoSandbox
	isolation isolation
}

// How long a self-test may take, and how long a failed one stands before it is
// made anew.
const (
	probeTime  = 30 * time.Second
	probeAgain = time.Minute
)

// An isolation is what the self-test of the jail found. It is made once, when somebody asks
// first.
type isolation struct {
	mu    sync.Mutex // guards what follows; held while the test is made, so that there is one
	found jail.Isolation
	err   error
	at    time.Time // zero: not made yet
}

// Isolation is what holds around a worker. A jail with a hole is sandbox.ErrIsolationBroken.
func (g *guests) Isolation(ctx context.Context) (jail.Isolation, error) {
	i := &g.isolation
	i.mu.Lock()
	defer i.mu.Unlock()
	if g.Sandbox == nil {
		return jail.Isolation{}, sandbox.ErrClosed
	}
	if !i.at.IsZero() && (i.err == nil || time.Since(i.at) < probeAgain) {
		return i.found, i.err
	}
	ctx, cancel := patience.Within(context.WithoutCancel(ctx), probeTime) // whoever asked may go away, and ask again
	defer cancel()
	report, err := g.Sandbox.Probe(ctx, g.DataDir)
	i.found, i.err, i.at = report.Isolation, err, time.Now()
	return i.found, i.err
}

func (g *guests) openSandbox(ctx context.Context) error {
	cache, err := g.cacheDir()
	if err != nil {
		return err
	}
	wire := abi.DefaultWireLimits()
	g.Sandbox, err = sandbox.Open(ctx, sandbox.Options{
		CacheDir: cache, BuildID: worker.BuildID(), Engine: worker.EngineVersion(), Jail: jail.Options{Walls: g.Options.Walls},
		Require: g.Options.Require, Prespawn: g.Options.Prespawn, OneRun: g.Options.OneRun, Limits: wire, Log: g.Options.Log,
		Audit: func(event string, details map[string]string) { g.Options.Log.Warn(event, "details", details) },
	})
	return err
}

// code compiles the module unless the cache has it: at install, or at the first
// use of a file.
func (g *guests) code(ctx context.Context, l *Loaded, interpreter bool) (sandbox.Code, error) {
	if interpreter {
		return sandbox.Code{}, nil
	}
	code, err := g.Sandbox.Prepare(ctx, l.Module, l.Wasm)
	if err != nil {
		return code, prepareRefusal(err)
	}
	return code, nil
}
