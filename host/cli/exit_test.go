package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// The exit codes of how runs end.
func TestResultCode(t *testing.T) {
	for reason, want := range map[string]int{
		"connector_reported_failed": exitConnector, "connector_reported_cancelled": exitConnector,
		"connector_trapped": exitConnector, "connector_exit_without_done": exitConnector,
		"connector_stdin_closed": exitConnector, "connector_protocol_violation": exitViolation,
		"run_timed_out": exitLimit, "assistance_timed_out": exitLimit, "memory_limit_exceeded": exitLimit,
		"grant_expired": exitLimit, "owner_cancelled": exitCancelled, "owner_cancel_forced": exitCancelled,
		"runtime_error": exitHost, "worker_lost": exitHost, "launch_failed": exitHost, "ingest_storage_error": exitHost,
		"interaction_handler_invalid_response": exitHost,
	} {
		if got := resultCode(&run.Result{Status: abi.Failed, TerminalReason: &reason}); got != want {
			t.Errorf("%s: code %d, want %d", reason, got, want)
		}
	}
	if got := resultCode(&run.Result{Status: abi.Succeeded}); got != exitOK {
		t.Errorf("success: code %d", got)
	}
	if got := resultCode(&run.Result{Status: abi.Succeeded, Outcome: run.OutcomePartial}); got != exitPartial {
		t.Errorf("success with data left out: code %d", got)
	}
}

// The exit codes of what was not started, and what is said of it.
func TestExit(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		name string
	}{
		{usagef("--x"), exitUsage, "invalid_request"},
		{errors.New(`unknown command "fly" for "sluice"`), exitUsage, "invalid_request"},
		{fmt.Errorf("open: %w", app.ErrStoreURL), exitUsage, "invalid_request"},
		{fmt.Errorf("read: %w", store.ErrNotFound), exitUsage, "not_found"},
		{app.ErrNoVault, exitUsage, "invalid_request"},
		{fmt.Errorf("set: %w", vault.ErrInvalid), exitUsage, "invalid_request"},
		{fmt.Errorf("get: %w", vault.ErrNotFound), exitUsage, "not_found"},
		{fmt.Errorf("get: %w", vault.ErrKey), exitHost, "runtime_error"},
		{&store.BusyError{Dir: "d", PID: 1}, exitHost, "store_in_use"},
		{&store.DamageError{Code: "store_corrupt"}, exitHost, "store_corrupt"},
		{interrupted{errors.New("context canceled")}, exitCancelled, "cancelled"},
		{errors.New("disk on fire"), exitHost, "runtime_error"},
		{&run.Refusal{Code: "scope_no_streams"}, exitUsage, "scope_no_streams"},
		{&run.Refusal{Code: "run_already_active"}, exitUsage, "run_already_active"},
		{&run.Refusal{Code: "secret_missing"}, exitUsage, "secret_missing"},
		{&run.Refusal{Code: "binding_unsatisfied"}, exitUsage, "binding_unsatisfied"},
		{&run.Refusal{Code: "binding_not_approved"}, exitLimit, "binding_not_approved"},
		{&run.Refusal{Code: "grant_consumed"}, exitLimit, "grant_consumed"},
		{&run.Refusal{Code: "store_no_space"}, exitHost, "store_no_space"},
		{&run.Refusal{Code: "runtime_error"}, exitHost, "runtime_error"},
		{&run.Refusal{Code: "isolation_unavailable"}, exitHost, "isolation_unavailable"},
	} {
		var out, errs bytes.Buffer
		cmd := &command{out: &out, errs: &errs}
		if got := cmd.exit(c.err); got != c.code {
			t.Errorf("%v: code %d, want %d", c.err, got, c.code)
		}
		if !strings.HasSuffix(errs.String(), "("+c.name+")\n") || out.Len() > 0 {
			t.Errorf("%v: said %q", c.err, errs.String())
		}
		cmd.json = true
		cmd.exit(c.err)
		if !strings.Contains(out.String(), `"error":"`+c.name+`"`) {
			t.Errorf("%v: printed %q", c.err, out.String())
		}
	}
}

// Every command has an example, a usage error ends with 2, and the help names
// no command that does not exist.
func TestHelp(t *testing.T) {
	c := &command{screen: newScreen(&bytes.Buffer{})}
	for _, cmd := range c.root().Commands() {
		if cmd.GroupID == "" {
			t.Errorf("%s is in no group of the help", cmd.Name())
		}
		if cmd.Example == "" || cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%s lacks an example or a description", cmd.Name())
		}
		for _, sub := range cmd.Commands() {
			if sub.Example == "" || sub.Short == "" || sub.Long == "" {
				t.Errorf("%s %s lacks an example or a description", cmd.Name(), sub.Name())
			}
		}
	}
}
