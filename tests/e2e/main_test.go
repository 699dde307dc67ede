package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/cli"
	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// asCLI makes this test binary act as the command line.
const asCLI = "SLUICE_E2E_CLI"

// TestMain also runs the command line and its workers.
func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	if os.Getenv(asCLI) != "" {
		os.Exit(cli.Main(os.Args[1:]))
	}
	code := m.Run()
	if chromium.close != nil {
		chromium.close()
	}
	os.Exit(code)
}

// steps is the connector that does what its settings say.
const steps = "steps"

// step is one entry of those settings; see guest/main.go.
type step map[string]any

func does(list ...step) any { return map[string]any{"steps": list} }

// tempDir returns a directory that is removed after the test.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := served.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// open serves dir until the test ends, or close is called.
func open(t *testing.T, dir string, change ...func(*daemon.Options)) (h *served.Host, closeIt func()) {
	t.Helper()
	o, err := served.Options(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(&o)
	}
	h, err = served.Open(o, dir)
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	closeIt = func() {
		t.Helper()
		if closed {
			return
		}
		closed = true
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(closeIt)
	return h, closeIt
}

// install installs the module of a directory in a service.
func install(t *testing.T, c *served.Client, dir string) {
	t.Helper()
	wasm, err := build.Connector(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Install(t.Context(), wasm); err != nil {
		t.Fatal(err)
	}
}

// connect makes a connection of the connector steps.
func connect(t *testing.T, c *served.Client, id store.ConnectionID, list ...step) {
	t.Helper()
	if err := c.Connect(t.Context(), steps, id, does(list...)); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, c *served.Client, workflow string) store.RunID {
	t.Helper()
	id, err := c.Start(t.Context(), workflow, "")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// soon is the test's context with a time limit.
func soon(t *testing.T) context.Context {
	ctx, cancel := served.Soon(t.Context())
	t.Cleanup(cancel)
	return ctx
}
