package host_test

import (
	"os"
	"testing"

	"github.com/sluicehost/sluice/host"
)

// TestMain is also the worker: the sandbox runs this binary again.
func TestMain(m *testing.M) {
	if code, worker := host.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
