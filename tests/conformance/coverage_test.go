package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
)

// Every subtype of a violation is shown by a transcript, and transcripts name no others.
func TestEverySubtypeHasATranscript(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range readTranscripts(t) {
		for _, c := range f.cases {
			for _, r := range c.runs {
				_, after, ok := strings.Cut(firstLine(r.want), "connector_protocol_violation ")
				if ok {
					subtype, _, _ := strings.Cut(strings.TrimSuffix(after, ","), " ")
					seen[strings.TrimSuffix(subtype, ",")] = true
				}
			}
		}
	}
	if len(abi.Subtypes()) != 94 {
		t.Errorf("%d subtypes, the specification has 94", len(abi.Subtypes()))
	}
	for s := range abi.Subtypes() {
		if !seen[string(s)] {
			t.Errorf("no transcript shows %s", s)
		}
		delete(seen, string(s))
	}
	for s := range seen {
		t.Errorf("a transcript shows %s, which is no subtype", s)
	}
}

// Every terminal reason that a connector or its owner can bring about is shown. The
// others need a broken host: see the tests of host/run.
func TestEveryReasonHasATranscript(t *testing.T) {
	reasons := strings.Fields(`connector_reported_failed connector_reported_cancelled connector_protocol_violation
		connector_exit_without_done connector_trapped connector_stdin_closed owner_cancelled owner_cancel_forced run_timed_out
		assistance_timed_out interaction_handler_invalid_response runtime_error`)
	text := testdata(t)
	for _, r := range reasons {
		if !strings.Contains(text, ": "+r) {
			t.Errorf("no transcript shows %s", r)
		}
	}
}

// Every refusal that depends on the request alone is shown.
func TestEveryRefusalHasATranscript(t *testing.T) {
	codes := strings.Fields(`connection_disabled grant_consumed grant_expired grant_revoked grant_invalid connector_invalid
		collection_mode_invalid scope_empty scope_no_streams scope_stream_name_blank scope_wildcard scope_stream_unknown
		scope_duplicate_stream scope_view_unresolved scope_necessity_present scope_resources_invalid scope_fields_invalid
		scope_time_range_invalid scope_time_range_unsupported scope_field_unknown scope_member_unknown scope_exceeds_grant start_state_invalid binding_unsatisfied binding_not_approved
		setting_missing secret_missing start_too_large`)
	text := testdata(t)
	for _, c := range codes {
		if !strings.Contains(text, "\nrefused: "+c+", exit ") {
			t.Errorf("no transcript shows %s", c)
		}
	}
}

func testdata(t *testing.T) string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
