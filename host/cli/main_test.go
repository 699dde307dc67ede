package cli_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/cli"
)

// The test binary is the command line, and its own workers.
func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){"sluice": func() { os.Exit(cli.Main(os.Args[1:])) }})
}
