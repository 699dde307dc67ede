//go:build linux

package jail_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/jail"
)

// collector is how the runtime dies when its collector is refused memory.
const collector = "SIGSEGV: segmentation violation\nPC=0x43349d m=0\n\ngoroutine 0 gp=0x9b6060 [idle]:\nruntime.(*spanQueue).tryDrain(0x400)\n"

// The table of ends.
func TestCause(t *testing.T) {
	limits := jail.RunLimits(64<<20, 0, 10*time.Second)
	for _, tc := range []struct {
		name string
		exit jail.Exit
		want jail.Cause
	}{
		{"killed by the host", jail.Exit{Code: -1, Signal: syscall.SIGKILL, Killed: true, User: time.Hour}, jail.CauseKilled},
		{"ended in peace", jail.Exit{}, jail.CauseExited},
		{"forbidden call", jail.Exit{Code: -1, Signal: syscall.SIGSYS}, jail.CauseViolation},
		{"CPU limit", jail.Exit{Code: -1, Signal: syscall.SIGKILL, User: 14 * time.Second, System: time.Second},
			jail.CauseCPU},
		{"CPU signal", jail.Exit{Code: -1, Signal: syscall.SIGXCPU}, jail.CauseCPU},
		{"kernel out of memory", jail.Exit{Code: -1, Signal: syscall.SIGKILL, User: time.Second, OutOfMemory: true},
			jail.CauseMemory},
		{"killed by somebody", jail.Exit{Code: -1, Signal: syscall.SIGKILL, User: time.Second}, jail.CauseCrashed},
		{"killed by somebody near the wall",
			jail.Exit{Code: -1, Signal: syscall.SIGKILL, PeakMemory: limits.DataBytes - 1<<20}, jail.CauseCrashed},
		{"runtime out of memory", jail.Exit{Code: 2, Stderr: []byte("fatal error: runtime: out of memory\n")},
			jail.CauseMemory},
		{"odd death near the wall", jail.Exit{Code: -1, Signal: syscall.SIGSEGV, PeakMemory: limits.DataBytes - 1<<20},
			jail.CauseMemory},
		{"crash", jail.Exit{Code: -1, Signal: syscall.SIGSEGV, PeakMemory: 1 << 20}, jail.CauseCrashed},
		{"collector's death a third of the way",
			jail.Exit{Code: 2, PeakMemory: limits.DataBytes / 3, Stderr: []byte(collector)}, jail.CauseMemory},
		{"collector's death far off", jail.Exit{Code: 2, PeakMemory: 1 << 20, Stderr: []byte(collector)}, jail.CauseCrashed},
		{"collector's death, unmeasured", jail.Exit{Code: 2, Stderr: []byte(collector)}, jail.CauseMemory},
		{"other death, unmeasured", jail.Exit{Code: 2, Stderr: []byte("SIGSEGV\n\ngoroutine 1 [running]:\nmain.main()\n")},
			jail.CauseCrashed},
		{"other death half way",
			jail.Exit{Code: 2, PeakMemory: limits.DataBytes / 2,
				Stderr: []byte("SIGSEGV\n\ngoroutine 1 [running]:\nmain.main()\n")}, jail.CauseCrashed},
		{"fatal error", jail.Exit{Code: 2, Stderr: []byte("fatal error: concurrent map writes\n")}, jail.CauseCrashed},
	} {
		if got := tc.exit.Cause(limits); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}
