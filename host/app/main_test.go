package app_test

import (
	"os"
	"testing"

	"github.com/sluicehost/sluice/host/app"
)

// TestMain is also the worker: the sandbox runs this binary again. And it is what
// tests kill.
func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	for variable, do := range children {
		if value := os.Getenv(variable); value != "" {
			os.Exit(do(value))
		}
	}
	os.Exit(m.Run())
}

// children are what this binary is instead of tests, by the variable of the environment that asks for it.
var children = map[string]func(value string) int{servesIn: serve}
