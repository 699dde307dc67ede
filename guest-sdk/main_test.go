//go:build !wasip1

package guest_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// TestMain lets the test binary be a connector's native build.
func TestMain(m *testing.M) {
	if os.Getenv("NATIVE_CONNECTOR") != "" {
		guest.Main(guest.Connector{})
	}
	os.Exit(m.Run())
}

// TestNativeMain: a native build says that it is no sandbox, and how to run it.
func TestNativeMain(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "NATIVE_CONNECTOR=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	exit, ok := errors.AsType[*exec.ExitError](cmd.Run())
	if !ok || exit.ExitCode() != 2 || !strings.Contains(stderr.String(), "no sandbox") ||
		!strings.Contains(stderr.String(), "guesttest.Run") {
		t.Errorf("exit %v, %s", exit, stderr.String())
	}
}
