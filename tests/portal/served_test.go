//go:build unix

package portal

import (
	"bytes"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The same with a running host: another command answers a question, and a question
// about a browser that is gone is closed as cancelled, not left open.
func TestServed(t *testing.T) {
	o := newOwner(t)
	o.do("install", built.portal).want(t, 0)
	host := o.held("Ctrl-C stops", "serve", "--listen", "127.0.0.1:0")
	o.do(append([]string{"connect", "portal"}, o.grants()...)...).want(t, 0, "Connection portal is made")

	lost := o.held("waits for an answer", "run", "portal")
	for _, pid := range o.browsers() {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(n, syscall.SIGKILL) // ours: its profile lies in this test's home
	}
	o.until("run.completed", "run.failed", "run.cancelled")
	_ = lost.Wait()
	events := o.do("events", "last", "--json")
	events.want(t, 0, `"run.browser_surface_lost"`, `"run.interaction_completed"`)
	if !strings.Contains(events.said, `"cancelled"`) || strings.Contains(events.said, password) {
		t.Fatal(events.said)
	}

	run := o.held("waits for an answer", "run", "portal")
	o.do("answer", "last", "--answer", "otp="+code, "--json").want(t, 0, `"status":"success"`)
	if err := run.Wait(); err != nil {
		t.Errorf("the run ended with %v", err)
	}
	o.do("show", "last").want(t, 0, "bookings: 60 collected")
	if got := o.bank.Truth(); got.Codes != 1 || got.Prepared != 1 {
		t.Errorf("the bank counted %+v", got)
	}
	if err := host.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	if left := o.browsers(); len(left) > 0 {
		t.Errorf("browsers are left: %v", left)
	}
}

// until follows the newest run to one of its last events.
func (o *owner) until(types ...string) {
	o.t.Helper()
	out := o.do("events", "last", "--follow", "--json").said
	for _, typ := range types {
		if bytes.Contains([]byte(out), []byte(typ)) {
			return
		}
	}
	o.t.Fatalf("none of %v came:\n%s", types, out)
}
