package chromium

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// errNoSandbox is a browser that did not come up because it may make no sandbox.
var errNoSandbox = errors.New("the browser's sandbox does not work here")

// noUsableSandbox knows what a browser says then.
func noUsableSandbox(said string) bool {
	return strings.Contains(said, "No usable sandbox") || strings.Contains(said, "without --no-sandbox is not supported") ||
		strings.Contains(said, "Failed to move to new namespace")
}

// A sandbox is what holds the renderers of a browser, seen from outside. Unknown
// ones are those that this host may not look at.
type sandbox struct {
	User, Network, PID wallState // namespaces of their own
	Seccomp            wallState
}

// wallState says whether a wall stands.
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

// whole reports whether every wall of the sandbox was seen to stand. Who may not look at a
// renderer's network namespace takes one in user and pid namespaces of its own, with
// a filter, for whole: the browser makes all of them in one step.
func (s sandbox) whole() bool {
	network := s.Network == wallStands || s.Network == wallUnknown && s.PID == wallStands
	return s.User == wallStands && network && s.Seccomp == wallStands
}

const (
	sandboxLimit = 2 * time.Second // for a renderer to show up
	sandboxPause = 10 * time.Millisecond
)

// safe is the self-test of the sandbox, and the refusal of a browser that turns out
// to be the headless shell.
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
			return fmt.Errorf("%w: renderers run without the browser's sandbox (%s); allow user namespaces for unprivileged users, "+
				"or set browser.allow_no_sandbox", ErrUnsafe, b.sandbox)
		}
	}
}
