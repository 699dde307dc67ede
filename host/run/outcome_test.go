package run

import (
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
)

// TestDecide: a cancel decides before a cause, a cause before the worker's end, and that
// before what the guest said of itself.
func TestDecide(t *testing.T) {
	left := func(kind sandbox.ExitKind) *sandbox.Exit { return &sandbox.Exit{Kind: kind} }
	done := func(status string) *abi.DoneMessage { return &abi.DoneMessage{Status: status} }
	for name, c := range map[string]struct {
		o      outcome
		status string
		reason string
		commit bool
	}{
		"cancelled": {outcome{cancel: &cancelling{}, latched: &cause{reason: "runtime_error"}, exit: left(sandbox.ExitExited),
			done: done(abi.Succeeded)},
			abi.Cancelled, "owner_cancelled", false},
		"cancelled by force": {outcome{cancel: &cancelling{forced: true}}, abi.Cancelled, "owner_cancel_forced", false},
		"a cause": {outcome{latched: &cause{reason: "runtime_error"}, exit: left(sandbox.ExitMemory)}, abi.Failed,
			"runtime_error", false},
		"memory": {outcome{exit: left(sandbox.ExitMemory), done: done(abi.Succeeded)}, abi.Failed,
			"memory_limit_exceeded", false},
		"without DONE": {outcome{exit: left(sandbox.ExitExited)}, abi.Failed, "connector_exit_without_done", false},
		"a trap":       {outcome{exit: left(sandbox.ExitTrapped)}, abi.Failed, "connector_trapped", false},
		"failed": {outcome{exit: left(sandbox.ExitExited), done: done(abi.Failed)}, abi.Failed,
			"connector_reported_failed", false},
		"gave up": {outcome{exit: left(sandbox.ExitExited), done: done(abi.Cancelled)}, abi.Cancelled,
			"connector_reported_cancelled", false},
		"succeeded": {outcome{exit: left(sandbox.ExitExited), done: done(abi.Succeeded)}, abi.Succeeded, "", true},
	} {
		all := &parts{plan: &Plan{}}
		all.calls = &calls{parts: all}
		all.gaps = &gaps{parts: all}
		c.o.parts = all
		if end := c.o.decide(); end.status != c.status || end.reason() != c.reason || end.commit != c.commit {
			t.Errorf("%s: %s %s, cursors commit: %v", name, end.status, end.reason(), end.commit)
		}
	}
}

// TestUnchanged: what is tried after the end was decided does not change it.
func TestUnchanged(t *testing.T) {
	o := &outcome{latched: &cause{reason: "first"}}
	restore := o.saveCause()
	o.latched = &cause{reason: "second"}
	if restore(); o.latched.reason != "first" {
		t.Errorf("the run ends for the %s cause", o.latched.reason)
	}
}
