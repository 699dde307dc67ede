//go:build linux

package jail_test

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sluicehost/sluice/host/jail"
)

// machine is what this machine has, found out without the package under test.
var machine = sync.OnceValue(func() []string {
	var has []string
	flags := uintptr(unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS)
	attr := &syscall.SysProcAttr{Cloneflags: flags}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	child := exec.Command("/proc/self/exe", "worker", jail.CanaryArg, "reached")
	child.SysProcAttr = attr
	if err := child.Start(); err == nil {
		_ = child.Wait() // status 9, as of every program a canary reaches
		has = append(has, "namespaces")
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0,
		unix.LANDLOCK_CREATE_RULESET_VERSION); errno == 0 {
		has = append(has, "landlock")
	}
	if runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64" {
		has = append(has, "seccomp")
	}
	return has
})

// need skips a test that proves nothing on a machine without the layers.
func need(t *testing.T, layers ...string) {
	t.Helper()
	for _, layer := range layers {
		if !slices.Contains(machine(), layer) {
			t.Skip("SKIPPED: " + layer)
		}
	}
}
