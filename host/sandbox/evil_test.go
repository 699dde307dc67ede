package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/tests/build"
)

// evilWorker is a worker that misbehaves (testdata/evil).
func evilWorker() (string, error) { return build.Native("host/sandbox/testdata/evil") }

// openEvil is a sandbox whose workers are evil, and a spec that is prepared.
func openEvil(t *testing.T, change ...func(*sandbox.Options)) (*sandbox.Sandbox, sandbox.Spec) {
	t.Helper()
	path, err := evilWorker()
	if err != nil {
		t.Fatal(err)
	}
	wasm := raw().bytes()
	prepared(t, open(t), wasm) // honestly; now it is in the cache
	s := open(t, append(change, func(o *sandbox.Options) { o.Jail.Executable, o.BuildID = path, "evil" })...)
	return s, prepared(t, s, wasm)
}

func TestEvilWorkersAreGivenUp(t *testing.T) {
	s, spec := openEvil(t)
	for _, name := range []string{
		"an unknown call", "a call of the host", "reply relayed", "hello again", "ready again", "an id again",
		"an id left out", "an errno", "an unknown errno", "a giant", "a frame over its limit", "start with a payload",
		"a short read", "a long close", "an endless sleep", "an empty stdin", "text of fd 9", "a fault of a kind unknown",
		"two calls at once", "emit while waiting", "emit beyond frames", "emit beyond bytes", "exit while waiting",
		"exit with a tail", "exit of a kind unknown", "something after exit", "half a header", "half a payload",
		"a closed socket", "exit, but staying", "a call before go",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := spec
			spec.Name = name
			g, err := s.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Kill()
			if name != "a call before go" {
				_ = g.Go() // may be refused: it is given up already
			}
			drain(g)
			if e := g.Exit(); e.Kind != sandbox.ExitProtocol || e.Detail == "" {
				t.Errorf("ended as %+v", e)
			}
		})
	}
}

func TestWorkersEnds(t *testing.T) {
	s, spec := openEvil(t)
	for name, want := range map[string]sandbox.ExitKind{
		"leaving without a word": sandbox.ExitCrashed,
		"crashing":               sandbox.ExitCrashed,
		"running out of memory":  sandbox.ExitMemory,
		"a violation":            sandbox.ExitViolation,
	} {
		t.Run(name, func(t *testing.T) {
			spec.Name = name
			g := started(t, s, spec)
			drain(g)
			if e := g.Exit(); e.Kind != want {
				t.Errorf("ended as %+v, want %s", e, want)
			}
		})
	}
}

func TestWorkersThatNeverBecomeReady(t *testing.T) {
	s, spec := openEvil(t)
	for _, name := range []string{"garbage before ready", "a call before ready", "exit before ready",
		"death before ready"} {
		t.Run(name, func(t *testing.T) {
			spec.Name = name
			_, err := s.Start(t.Context(), spec)
			var f *sandbox.Failure
			if !errors.As(err, &f) || f.Code != sandbox.CodeWorkerFailed {
				t.Errorf("started with %v", err)
			}
		})
	}
	t.Run("another build", func(t *testing.T) {
		other := open(t, func(o *sandbox.Options) { o.BuildID = "another" })
		_, err := other.Start(t.Context(), spec)
		if err == nil || !strings.Contains(err.Error(), "another build") {
			t.Errorf("started with %v", err)
		}
	})
}

func TestAWorkerThatDoesNotReadIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the write deadline of five seconds")
	}
	s, spec := openEvil(t)
	spec.Name = "not reading"
	g := started(t, s, spec)
	in := <-g.Calls()
	if err := g.Reply(in.ID, abi.OK, make([]byte, 4<<20)); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("reply: %v", err)
	}
	drain(g)
	if e := g.Exit(); e.Kind != sandbox.ExitProtocol {
		t.Errorf("ended as %+v", e)
	}
}

func TestEvilCompilersOutputIsRefused(t *testing.T) {
	path, err := evilWorker()
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, func(o *sandbox.Options) {
		o.Jail.Executable, o.BuildID, o.CacheDir, o.Jail.Walls.Off = path, "evil", t.TempDir(), true
	})
	for _, what := range []string{"nothing", "two", "link", "hard", "elsewhere", "huge", "nested"} {
		t.Run(what, func(t *testing.T) {
			wasm := append(raw().bytes(), join([]byte{0}, sized(custom("evil:"+what)))...)
			m, err := sandbox.CheckModule(wasm, sandbox.ModuleLimits{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Prepare(context.Background(), m, wasm)
			var f *sandbox.Failure
			if !errors.As(err, &f) || f.Code != sandbox.CodeCompileFailed {
				t.Errorf("prepared with %v", err)
			}
		})
	}
}
