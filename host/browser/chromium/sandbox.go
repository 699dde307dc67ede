package chromium

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// errNoSandbox means that the browser did not start because it cannot make a sandbox.
var errNoSandbox = errors.New("the browser's sandbox does not work here")

// noUsableSandbox recognises the browser's messages for that.
func noUsableSandbox(said string) bool {
	return strings.Contains(said, "No usable sandbox") ||
		strings.Contains(said, "without --no-sandbox is not supported") ||
		strings.Contains(said, "Failed to move to new namespace")
}

// A sandbox is the isolation of a browser's renderers, seen from outside. States are unknown where
// this host may not look.
type sandbox struct {
	User, Network, PID wallState // own namespaces
	Seccomp            wallState
}

// A wallState says whether one barrier of the sandbox is in place.
type wallState int

const (
	wallUnknown wallState = iota
	wallStands
	wallMissing
)

func (s sandbox) String() string {
	var missing []string
	for _, w := range []struct {
		name string
		wall wallState
	}{{"user namespace", s.User}, {"network namespace", s.Network}, {"seccomp filter", s.Seccomp}} {
		if w.wall != wallStands {
			missing = append(missing, w.name)
		}
	}
	if len(missing) == 0 {
		return "on"
	}
	return "no own " + strings.Join(missing, ", ") + " seen"
}

// whole reports whether the whole sandbox was seen in place. If the network namespace cannot be
// inspected, own user and pid namespaces and a seccomp filter suffice, since the browser makes all
// of them in one step.
func (s sandbox) whole() bool {
	network := s.Network == wallStands || s.Network == wallUnknown && s.PID == wallStands
	return s.User == wallStands && network && s.Seccomp == wallStands
}

const (
	sandboxLimit = 2 * time.Second // for a renderer to appear
	sandboxPause = 10 * time.Millisecond
)

// safe tests the sandbox, and refuses a browser that turns out to be the headless shell.
func (b *Browser) safe(ctx context.Context) error {
	if b.product == "HeadlessChrome" && !b.options.Namespace && !b.options.Binary.Shell {
		bin := b.options.Binary
		bin.Shell = true
		if err := bin.safe(false); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, sandboxLimit)
	defer cancel()
	tick := time.NewTicker(sandboxPause)
	defer tick.Stop()
	for {
		var found bool
		if b.sandbox, found = inspect(b.group.pid); found && (b.sandbox.whole() || b.options.AllowNoSandbox) {
			return nil
		}
		select {
		case <-tick.C:
		case <-b.lost:
			return b.Fault()
		case <-ctx.Done():
			if b.options.AllowNoSandbox {
				return nil
			}
			return fmt.Errorf(
				"%w: renderers run without the browser's sandbox (%s); allow user namespaces for unprivileged users, "+
					"or set browser.allow_no_sandbox", ErrUnsafe, b.sandbox)
		}
	}
}
