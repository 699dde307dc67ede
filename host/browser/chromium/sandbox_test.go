package chromium_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// A browser whose renderers have no walls is not used, unless the operator says so,
// and then it is shown.
func TestSandboxIsTested(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Wrap = func(cmd *exec.Cmd) error { // what a hostile wrapper, or a careless change, would do
		cmd.Args = slices.Insert(cmd.Args, 1, "--no-sandbox")
		return nil
	}
	if _, err := chromium.Start(t.Context(), o); !errors.Is(err, chromium.ErrUnsafe) ||
		!strings.Contains(err.Error(), "seccomp") {
		t.Errorf("without a sandbox: %v", err)
	}
	if left := owned(o); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	o.AllowNoSandbox = true
	b := started(t, o)
	if f := b.Facts(); f.Sandbox == "on" || !strings.Contains(f.Sandbox, "seccomp") {
		t.Errorf("facts: %+v", f)
	}
}

// A machine on which the browser can make no sandbox is told apart from other
// failures, and the operator's word starts it without one.
func TestNoUsableSandbox(t *testing.T) {
	o := options(t)
	real := o.Binary.Path
	o.Binary.Path = filepath.Join(openDir(t), "browser")
	write(t, o.Binary.Path, `#!/bin/sh
case "$*" in *--no-sandbox*) exec `+real+` "$@" ;; esac
echo "[1:1:FATAL:zygote_host_impl_linux.cc(128)] No usable sandbox! If you are running on Ubuntu 23.10+ ..." >&2
exit 134
`, 0o755)
	if _, err := chromium.Start(t.Context(), o); !errors.Is(err, chromium.ErrUnsafe) ||
		!strings.Contains(err.Error(), "user namespaces") {
		t.Errorf("no sandbox: %v", err)
	}
	o.AllowNoSandbox = true
	b := started(t, o)
	if f := b.Facts(); f.Sandbox == "on" {
		t.Errorf("facts: %+v", f)
	}
}
