package app_test

import (
	"os"
	"testing"

	"github.com/sluicehost/sluice/host/app"
)

// TestMain is also the worker: the sandbox runs this binary again. And it is the
// service that a test kills.
func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	if what := os.Getenv(moves); what != "" {
		os.Exit(move(what))
	}
	if dir := os.Getenv(servesIn); dir != "" {
		os.Exit(serve(dir))
	}
	os.Exit(m.Run())
}
