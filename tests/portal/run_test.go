//go:build unix

package portal

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/sluicehost/sluice/tests/portal/site"
)

// The portal is collected in a home directory that only its owner enters. Its statement
// is ordered once, and the second run finds the profile signed in and asks nothing.
func TestCollect(t *testing.T) {
	o := newOwner(t)
	o.do(o.portal("--trace")...).want(t, 0, "Signed in", "accounts: 2 collected",
		"bookings: 60 collected, 60 new or changed",
		"statements: 1 collected", "traces/browser-trace-run_")
	if got, want := o.bank.Truth(), (site.Truth{Logins: 1, Codes: 1, Prepared: 1, Pages: 3, Printed: 1}); got != want {
		t.Errorf("the bank counted %+v, want %+v", got, want)
	}
	o.traced()
	o.printed()
	o.do(o.portal()...).want(t, 0, "Signed in already", "bookings: 60 collected, 0 new or changed",
		"statements: 1 collected, 0 new or changed", "--answer otp was not used")
	if got := o.bank.Truth(); got.Logins != 1 || got.Codes != 1 || got.Prepared != 2 {
		t.Errorf("the second run: the bank counted %+v", got)
	}
	if left := o.browsers(); len(left) > 0 {
		t.Errorf("browsers are left: %v", left)
	}
}

// A password that the bank refuses, and a server that the owner did not allow, end the
// run with a message that says so, and nothing is tried twice.
func TestRefused(t *testing.T) {
	o := newOwner(t)
	o.do(o.portal("--secret", "password=@"+o.keep("wrong", "wrong-horse"))...).want(t, 1, "the bank refuses to sign in",
		"See to what the message says")
	if got := o.bank.Truth(); got != (site.Truth{Refused: 1}) {
		t.Errorf("the bank counted %+v", got)
	}
	before := o.bank.Truth()
	o.do(o.portal("--connection", "elsewhere", "--config", `{"site":"http://127.0.0.1:9","user":"ada"}`)...).want(t, 1,
		"host_denied")
	if o.bank.Truth() != before {
		t.Error("the bank was reached")
	}
}

// Without a browser a run is refused before anything starts, with a message that says
// what to install.
func TestNoBrowser(t *testing.T) {
	o := newOwner(t)
	o.env = []string{"SLUICE_BROWSER=/nonexistent"}
	o.do(o.portal()...).want(t, 2, "/nonexistent", "apt-get install chromium", "binding_unsatisfied")
	if _, err := os.Stat(o.data("profiles", "portal")); !os.IsNotExist(err) {
		t.Errorf("a profile was made: %v", err)
	}
	o.do("doctor").want(t, 0, "/nonexistent", "SLUICE_BROWSER")
}

// A host that is not root uses the browser's own sandbox.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: all other tests run unprivileged already")
	}
	o := newOwner(t)
	uid := uint32(70_000 + os.Getpid()%10_000)
	o.as = func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	o.env = []string{"SLUICE_CACHE=" + o.home + "/cache"}
	for _, path := range []string{o.home, o.home + "/password"} {
		if err := os.Chown(path, int(uid), int(uid)); err != nil {
			t.Fatal(err)
		}
	}
	o.do(o.portal()...).want(t, 0, "bookings: 60 collected")
	if got := o.bank.Truth(); got.Prepared != 1 {
		t.Errorf("the bank counted %+v", got)
	}
}
