package chromium

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sluicehost/sluice/host/patience"
)

const (
	// versionLimit is how long an idle machine may take to ask a browser what it is.
	versionLimit = 5 * time.Second
	// versionAgain is how long to wait for what the machine is short of.
	versionAgain = 200 * time.Millisecond
)

// banner is what a Chromium prints for --version. Product names are letters and
// spaces: "Chromium 148.0.7778.167 built on Debian", "Google Chrome 150.0.7000.1".
var banner = regexp.MustCompile(`^([A-Za-z][A-Za-z ]{0,60}[A-Za-z]) (([0-9]{1,5})(?:\.[0-9]{1,9}){1,3})\b`)

// askVersion runs an executable with --version, which starts no browser, under no
// rights of this host's root and with the environment that a browser has. ErrSlow says
// that it did not answer in the time that the machine's load allows, or could not be
// run for want of processes or memory.
func askVersion(ctx context.Context, path string) (product, version string, major int, err error) {
	ctx, cancel := patience.Within(ctx, versionLimit)
	defer cancel()
	for {
		product, version, major, err = askOnce(ctx, path)
		if !scarce(err) || ctx.Err() != nil {
			return product, version, major, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(versionAgain):
		}
	}
}

// scarce reports an error that goes away when others have ended.
func scarce(err error) bool {
	for _, short := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, short) {
			return true
		}
	}
	return false
}

func askOnce(ctx context.Context, path string) (product, version string, major int, err error) {
	cmd := exec.CommandContext(ctx, path, "--version") // #nosec G204 -- the operator's browser
	cmd.Env = environment("/nonexistent", "/nonexistent")
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	harmless(cmd)
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	runtime.LockOSThread() // the process ends with the thread that started it
	err = cmd.Run()
	runtime.UnlockOSThread()
	if ctx.Err() != nil {
		return "", "", 0, fmt.Errorf("%w: %s does not answer --version: %w", ErrSlow, path, context.Cause(ctx))
	}
	if scarce(err) {
		return "", "", 0, fmt.Errorf("%w: %s does not run: %w", ErrSlow, path, err)
	}
	m := banner.FindStringSubmatch(strings.TrimSpace(out.String()))
	switch {
	case err != nil:
		return "", "", 0, fmt.Errorf("does not run: %w: %s", reason(err), out.line())
	case m == nil || strings.EqualFold(m[1], "snap"):
		return "", "", 0, fmt.Errorf("is not a Chromium: it says %q to --version", out.line())
	}
	major, err = strconv.Atoi(m[3])
	return m[1], m[2], major, err
}
