package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/tests/build"
)

// What the tests share: the program that workers are, one cache of compiled
// code, and the Go guests, each built at most once.
var built struct {
	dir           string
	worker        string
	build, engine string
}

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sandbox")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built.dir = dir
	if built.worker, err = build.Native("host/sandbox/testdata/worker"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	out, err := exec.Command(built.worker).Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	lines := strings.Split(string(out), "\n")
	built.build, built.engine = lines[0], lines[1]
	return m.Run()
}

// taskGuest is the guest of testdata/guest.
func taskGuest() ([]byte, error) { return build.Guest("host/sandbox/testdata/guest") }

// options are those of the shared sandbox.
func options() sandbox.Options {
	return sandbox.Options{
		CacheDir: filepath.Join(built.dir, "cache"),
		BuildID:  built.build,
		Engine:   built.engine,
		Jail:     jail.Options{Executable: built.worker},
		Prespawn: -1,
	}
}

func open(t testing.TB, change ...func(*sandbox.Options)) *sandbox.Sandbox {
	t.Helper()
	o := options()
	for _, f := range change {
		f(&o)
	}
	s, err := sandbox.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// prepared checks and compiles wasm and returns what starts it.
func prepared(t testing.TB, s *sandbox.Sandbox, wasm []byte) sandbox.Spec {
	t.Helper()
	m, err := sandbox.CheckModule(wasm, sandbox.ModuleLimits{})
	if err != nil {
		t.Fatal(err)
	}
	code, err := s.Prepare(t.Context(), m, wasm)
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Spec{Name: "test", Module: m, Wasm: wasm, Code: code, MemoryBytes: 64 << 20}
}

// doing starts the Go guest with a task and lets it go.
func doing(t testing.TB, s *sandbox.Sandbox, task string, change ...func(*sandbox.Spec)) *sandbox.Guest {
	t.Helper()
	wasm, err := taskGuest()
	if err != nil {
		t.Fatal(err)
	}
	spec := prepared(t, s, wasm)
	spec.Env = []string{"DO=" + task, "TZ=UTC"}
	for _, f := range change {
		f(&spec)
	}
	return started(t, s, spec)
}

func started(t testing.TB, s *sandbox.Sandbox, spec sandbox.Spec) *sandbox.Guest {
	t.Helper()
	g, err := s.Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Kill)
	if err := g.Go(); err != nil {
		t.Fatal(err)
	}
	return g
}
