package timeline

import (
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
)

// Every trouble has a sentence, a command and a page, whatever is known of it.
func TestEveryTroubleHasARemedy(t *testing.T) {
	reasons := []string{"", "owner_cancelled", "owner_cancel_forced", "controller_restarted", "assistance_timed_out",
		"interaction_cancelled",
		"run_timed_out", "memory_limit_exceeded", "recording_full", "recording_mismatch", "scope_not_supported",
		"grant_revoked", "grant_expired", "connector_protocol_violation", "connector_trapped", "connector_exit_without_done",
		"connector_stdin_closed", "connector_reported_failed", "connector_reported_cancelled", "worker_lost",
		"worker_protocol_error", "launch_failed", "ingest_storage_error", "runtime_error", "what_no_table_has"}
	kinds := []string{"", "run_failed", "interaction_required", "checkpoint_commit", "records_rejected",
		"detail_gap", "stream_skipped"}
	actions := []string{"", abi.RetryByRuntime, abi.RetryOnConnectorUpgrade, abi.RefreshCredentials,
		abi.ManualActionRequired, abi.UpdateSelector,
		abi.UpstreamUnblock, abi.NotRetriable, "an_action_of_tomorrow"}
	for _, reason := range reasons {
		for _, kind := range kinds {
			for _, action := range actions {
				for n := range 8 {
					x := Trouble{Connection: "mail", Run: "run_1", Kind: kind, Reason: reason, Action: action,
						Said: n&1 > 0, Unkept: n&2 > 0}
					if n&4 > 0 {
						x.Connector = "mailbox"
					}
					if x.Unkept {
						x.Again = "sluice run mailbox.wasm"
					}
					r := x.Remedy()
					if r.Text == "" || r.Label == "" || !strings.HasPrefix(r.Command, "sluice ") ||
						!strings.HasPrefix(r.Page, "/ui/") {
						t.Errorf("%+v: %+v", x, r)
					}
					if x.Unkept && strings.Contains(r.Command, "mail ") || x.Unkept && strings.Contains(r.Command, string(x.Run)) {
						t.Errorf("%+v: nothing of it is kept: %s", x, r.Command)
					}
				}
			}
		}
	}
}

// What helps is what the cause asks for.
func TestRemedyFitsItsCause(t *testing.T) {
	for _, c := range []struct {
		Trouble
		command, page string
	}{
		{Trouble{Reason: "grant_revoked"}, "sluice grant mail", "/ui/connections/mail/grant"},
		{Trouble{Reason: "run_timed_out", Action: abi.RetryByRuntime}, "sluice grant mail", "/ui/connections/mail/grant"},
		{Trouble{Kind: "detail_gap", Action: abi.NotRetriable}, "sluice events run_1", "/ui/runs/run_1"},
		{Trouble{Kind: "detail_gap", Action: abi.RefreshCredentials}, "sluice secret list mail", "/ui/connections/mail"},
		{Trouble{Kind: "records_rejected"}, "sluice check mailbox", "/ui/connectors/mailbox"},
		{Trouble{Reason: "connector_reported_failed", Action: abi.RefreshCredentials}, "sluice secret list mail",
			"/ui/connections/mail"},
		{Trouble{Reason: "connector_reported_failed", Said: true}, "sluice run mail", "/ui/connections/mail"},
		{Trouble{Reason: "connector_reported_failed"}, "sluice events run_1", "/ui/runs/run_1"},
		{Trouble{Reason: "connector_trapped"}, "sluice events run_1", "/ui/connectors/mailbox"},
		{Trouble{Reason: "launch_failed"}, "sluice doctor", "/ui/settings"},
		{Trouble{Reason: "owner_cancelled", Again: "sluice run mailbox.wasm"}, "sluice run mailbox.wasm",
			"/ui/connections/mail"},
	} {
		c.Connection, c.Connector, c.Run = "mail", "mailbox", "run_1"
		if r := c.Remedy(); r.Command != c.command || r.Page != c.page {
			t.Errorf("%+v: %q, %q", c.Trouble, r.Command, r.Page)
		}
	}
}
