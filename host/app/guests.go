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

// guests compiles modules and runs them, each in its own jail.
type guests struct {
	*directory
	Sandbox   *sandbox.Sandbox // nil before openSandbox, and always with Options.NoSandbox
	isolation isolation
}

// The time limit of a self-test, and how long a failed result is kept before the test is repeated.
const (
	probeTime  = 30 * time.Second
	probeAgain = time.Minute
)

// An isolation is the result of the jail's self-test, which runs on first use.
type isolation struct {
	mu    sync.Mutex // held during the test, so that it runs only once; guards what follows
	found jail.Isolation
	err   error
	at    time.Time // zero before the first test
}

// Isolation returns the isolation of workers. A jail that fails its self-test is sandbox.ErrIsolationBroken.
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
	ctx, cancel := patience.Within(context.WithoutCancel(ctx), probeTime) // the caller may be gone before the test ends
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
		CacheDir: cache, BuildID: worker.BuildID(), Engine: worker.EngineVersion(),
		Jail: jail.Options{Walls: g.Options.Walls}, Require: g.Options.Require, Prespawn: g.Options.Prespawn,
		OneRun: g.Options.OneRun, Limits: wire, Log: g.Options.Log,
		Audit: func(event string, details map[string]string) { g.Options.Log.Warn(event, "details", details) },
	})
	return err
}

// code returns the compiled module, which it compiles unless the cache has it. It is called at install and at
// the first use of a file.
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
