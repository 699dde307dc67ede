package jail_test

import (
	"testing"

	"github.com/sluicehost/sluice/host/jail"
	"golang.org/x/sys/unix"
)

// A host is undumpable, makes no core file, and starts its workers all the same,
// also when it is no root (see TestUnprivileged).
func TestConceal(t *testing.T) {
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) })
	if err := jail.Conceal(); err != nil {
		t.Fatal(err)
	}
	dumpable := func() int {
		n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	w, _ := run(t, launcher(t, jail.Options{}), order{Seal: true, Do: "live"}, nil)
	if got := w.reply(t).Result; len(got) != 1 || got[0] != "alive" {
		t.Errorf("a worker of it: %q", got)
	}
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil || core.Max != 0 || dumpable() != 0 {
		t.Errorf("dumpable %d, core files of %d bytes: %v", dumpable(), core.Max, err)
	}
}
