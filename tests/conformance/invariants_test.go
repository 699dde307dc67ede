package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// A tester is a test, or a check of rapid.
type tester interface {
	Helper()
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

// catalogue holds the types of events that a timeline may hold. See docs/spec/api.md,
// "Event catalogue".
var catalogue = strings.Fields(`
	run.started run.completed run.failed run.cancelled run.paused run.resumed
	node.started node.completed node.failed node.skipped node.cancelled node.suspended node.resumed node.retried
	interrupt.requested interrupt.resolved approval.requested approval.received clarification.requested clarification.resolved
	artifact.created output.chunk log.appended version.pinned cap.breached
	lease.acquired lease.renewed lease.lost
	run.progress_reported run.batch_ingested run.state_staged run.state_advanced run.state_commit_failed run.stream_skipped
	run.detail_coverage_declared run.detail_gap_recorded run.detail_gap_recovered
	run.interaction_required run.interaction_completed
	run.assistance_requested run.assistance_updated run.assistance_resolved run.assistance_cancelled run.assistance_timed_out run.assistance_escalated
	run.browser_surface_requested run.browser_surface_queued run.browser_surface_starting run.browser_surface_ready
	run.browser_surface_probe_failed run.browser_surface_failed run.browser_surface_released run.browser_surface_lost
	run.browser_action run.browser_egress_denied run.browser_cookie_handoff
	run.stream_session_requested run.stream_session_opened run.stream_session_resolved run.stream_reach_failed
	run.sealed_value_used run.cancel_requested`)

var terminalTypes = []string{"run.completed", "run.failed", "run.cancelled"}

// The members of a result: those every run has, and those some have.
var (
	resultMembers = strings.Fields(`run_id trace_id connector_id connection_id connector_digest status outcome terminal_reason failure exit_code
		records_emitted records_attempted records_accepted records_flushed records_permanently_rejected records_unresolved_retryable
		state checkpoint_summary known_gaps detail_gaps collection_facts connector_error trigger_kind usage isolation`)
	optionalMembers = strings.Fields(`memory violation trap reported_records_emitted connector_diagnostics deadline cancel_cause
		stdin_closed_at_phase automation_mode host_bound`)
	terminalMembers = strings.Fields(`outcome records_emitted records_attempted records_accepted records_flushed records_permanently_rejected
		records_unresolved_retryable buffered_records_dropped checkpoint_mode checkpoint_commit_status state_streams_staged
		state_streams_committed persist_state grant_id trigger_kind`)
)

// requiredMembers are the members that every event of a type has.
var requiredMembers = map[string]string{
	"run.started":                  "workflowId collection_mode grant_id persist_state state_commit_intent bindings scope scope_streams trigger_kind attempt guest_transport module_digest isolation boot_epoch controller_id",
	"lease.acquired":               "leaseId host instanceId",
	"lease.renewed":                "leaseId host instanceId expiresAt",
	"lease.lost":                   "leaseId host instanceId expiresAt",
	"run.paused":                   "drainPolicy requestedBy",
	"run.resumed":                  "cause",
	"run.sealed_value_used":        "field origin placement",
	"node.started":                 "nodeId typeId attempt",
	"node.completed":               "nodeId outputs",
	"node.failed":                  "nodeId error",
	"node.cancelled":               "nodeId reason",
	"node.skipped":                 "nodeId reason",
	"node.retried":                 "nodeId attempt",
	"version.pinned":               "nodeId connectorId version moduleDigest",
	"node.suspended":               "nodeId interruptId kind key",
	"node.resumed":                 "nodeId interruptId",
	"interrupt.requested":          "kind key data",
	"interrupt.resolved":           "nodeId interruptId kind status resolvedBy resolvedAt",
	"approval.requested":           "nodeId artifactId artifactType actions",
	"artifact.created":             "nodeId artifactId artifactType",
	"approval.received":            "nodeId action decidedAt",
	"clarification.requested":      "nodeId questions",
	"clarification.resolved":       "nodeId answers",
	"output.chunk":                 "nodeId chunk isLast",
	"log.appended":                 "level message",
	"cap.breached":                 "kind limit observed",
	"run.progress_reported":        "message",
	"run.batch_ingested":           "batch_size records_attempted records_accepted records_flushed records_rejected records_permanently_rejected total_records_flushed grant_id",
	"run.state_staged":             "cursor checkpoint_mode grant_id state_commit_intent state_streams_staged",
	"run.state_advanced":           "cursor checkpoint_mode grant_id state_streams_committed",
	"run.state_commit_failed":      "cursor checkpoint_mode grant_id error_message state_streams_staged state_streams_committed",
	"run.stream_skipped":           "stream reason message known_gap",
	"run.detail_coverage_declared": "stream state_stream required_keys hydrated_keys gap_keys optional_skip_keys",
	"run.detail_gap_recorded":      "gap_id stream parent_stream reason status attempt_count",
	"run.detail_gap_recovered":     "gap_id stream status",
	"run.interaction_required":     "kind message stream",
	"run.interaction_completed":    "kind status stream",
	"run.assistance_requested":     "assistance_request_id progress_posture owner_action response_obligation sensitivity message",
	"run.assistance_resolved":      "assistance_request_id status",
	"run.assistance_cancelled":     "assistance_request_id status",
	"run.assistance_timed_out":     "assistance_request_id status",
	"run.assistance_escalated":     "assistance_request_id status",
	"run.assistance_updated":       "assistance_request_id attachments",
	"run.browser_surface_failed":   "surface_id browser_surface_probe",
	"run.browser_surface_released": "surface_id",
	"run.browser_surface_lost":     "surface_id interaction_id kind browser_surface_probe",
	"run.browser_action":           "",
	"run.browser_egress_denied":    "",
	"run.cancel_requested":         "cancel_cause trigger_kind",
	"run.completed":                strings.Join(terminalMembers, " ") + " durationMs",
	"run.failed":                   strings.Join(terminalMembers, " ") + " durationMs error reason",
	"run.cancelled":                strings.Join(terminalMembers, " ") + " durationMs reason cancelledBy",
}

// invariants are the rules that hold for every run.
func (g *stage) invariants(t tester, p *played) {
	t.Helper()
	if p.result == nil {
		return
	}
	checkLog(t, p.events)
	for _, e := range p.events {
		checkEvent(t, e, p)
	}
	checkSecrets(t, p)
	raw, err := json.Marshal(p.result)
	if err != nil {
		t.Fatal(err)
	}
	checkResult(t, raw, p.result)
	checkCounts(t, p)
	checkGaps(t, p.result)
	g.checkStore(t, p)
}

// checkLog checks that sequence numbers have no gaps, that run.started can only be the
// first event, and that the last event, and no other, is terminal.
func checkLog(t tester, events []store.Event) {
	t.Helper()
	if len(events) == 0 {
		t.Fatal("no events")
	}
	for i, e := range events {
		if e.Sequence != uint64(i) {
			t.Errorf("event %d has sequence %d", i, e.Sequence)
		}
		if last, terminal := i == len(events)-1, slices.Contains(terminalTypes, e.Type); last != terminal {
			t.Errorf("event %d of %d is %s", i, len(events), e.Type)
		}
		if e.Type == "run.started" && i != 0 {
			t.Errorf("run.started is event %d", i)
		}
		if i > 0 && e.OccurredAt.Before(events[0].OccurredAt) {
			t.Errorf("event %d occurred before the first", i)
		}
	}
}

var (
	runPattern   = regexp.MustCompile(`^run_[0-9A-HJKMNP-TV-Z]{26}$`)
	tracePattern = regexp.MustCompile(`^trc_[0-9a-f]{16}$`)
	eventPattern = regexp.MustCompile(`^evt_[0-9a-f]{16}$`)
)

// checkEvent checks an event's type, size, ids, source and members.
func checkEvent(t tester, e store.Event, p *played) {
	t.Helper()
	if !slices.Contains(catalogue, e.Type) {
		t.Errorf("event %s is not in the catalogue", e.Type)
	}
	if len(e.Data) > 64<<10 {
		t.Errorf("%s has %d bytes", e.Type, len(e.Data))
	}
	if !runPattern.MatchString(string(e.RunID)) || !tracePattern.MatchString(string(e.TraceID)) ||
		!eventPattern.MatchString(string(e.ID)) {
		t.Errorf("%s has ids %s %s %s", e.Type, e.RunID, e.TraceID, e.ID)
	}
	if e.ConnectorID != p.result.ConnectorID || e.ConnectionID != p.result.ConnectionID ||
		e.RunID != p.result.RunID || e.Status == "" {
		t.Errorf("%s: connector %s, connection %s, run %s, status %q", e.Type, e.ConnectorID,
			e.ConnectionID, e.RunID, e.Status)
	}
	var data map[string]json.RawMessage
	if err := json.Unmarshal(e.Data, &data); err != nil {
		t.Fatalf("%s: %v", e.Type, err)
	}
	if e.Type == "interrupt.requested" { // has these members and no others
		for name := range data {
			if !slices.Contains([]string{"kind", "key", "data", "resumeSchema", "timeoutMs"}, name) {
				t.Errorf("%s has a member %s", e.Type, name)
			}
		}
	} else if got := string(data["source"]); got != fmt.Sprintf(`{"id":%q,"kind":"connector"}`, e.ConnectorID) {
		t.Errorf("%s: source %s", e.Type, got)
	}
	for _, name := range strings.Fields(requiredMembers[e.Type]) {
		if _, ok := data[name]; !ok {
			t.Errorf("%s has no %s: %s", e.Type, name, e.Data)
		}
	}
	if _, listed := requiredMembers[e.Type]; !listed {
		t.Errorf("%s: its members are not checked", e.Type)
	}
}

// checkSecrets checks that no secret of the script, and no path of the host, is in an
// event or the result.
func checkSecrets(t tester, p *played) {
	t.Helper()
	shown := *p.result
	shown.State = nil // cursors are the connector's, and opaque
	result, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(result)}
	for _, e := range p.events {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(raw))
	}
	for _, text := range texts {
		for _, s := range append([]string{os.TempDir() + "/"}, p.secrets...) {
			if strings.Contains(text, s) {
				t.Errorf("%q is in %s", s, text)
			}
		}
	}
}

// checkResult checks that the result has the members it must have, and no unknown ones.
func checkResult(t tester, raw []byte, r *run.Result) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range resultMembers {
		if _, ok := members[name]; !ok {
			t.Errorf("the result has no %s", name)
		}
	}
	for name, v := range members {
		if !slices.Contains(resultMembers, name) && !slices.Contains(optionalMembers, name) {
			t.Errorf("the result has a member %s", name)
		}
		if slices.Contains([]string{"state", "checkpoint_summary", "known_gaps", "detail_gaps", "usage", "isolation"},
			name) && string(v) == "null" {
			t.Errorf("%s is null", name)
		}
	}
	succeeded, failed := r.Status == abi.Succeeded, r.Status == abi.Failed
	for _, c := range []struct {
		what string
		ok   bool
	}{
		{"a reason unless it succeeded", (r.TerminalReason == nil) == succeeded},
		{"the outcome of its status", !succeeded && r.Outcome == r.Status ||
			succeeded && (r.Outcome == run.OutcomeComplete) == whole(r)},
		{"a failure if it failed", (r.Failure != nil) == failed},
		{"a violation for its reason only",
			(r.Violation != nil) == (r.TerminalReason != nil && *r.TerminalReason == "connector_protocol_violation")},
		{"a deadline for its reason only",
			(r.Deadline != "") == (r.TerminalReason != nil && *r.TerminalReason == "run_timed_out")},
		{"a cancel cause if it was cancelled, by whomever", (r.CancelCause != "") == (r.Status == abi.Cancelled)},
		{"a reason in failure", r.Failure == nil || r.Failure.Reason == *r.TerminalReason},
		{"the subtype in failure", r.Violation == nil || r.Failure.Subtype == string(r.Violation.Subtype)},
		{"flushed = accepted", r.RecordsFlushed == r.RecordsAccepted},
		{"unresolved = attempted - accepted - rejected",
			r.RecordsUnresolvedRetryable == r.RecordsAttempted-r.RecordsAccepted-r.RecordsPermanentlyRejected},
	} {
		if !c.ok {
			t.Errorf("the result must have %s: %s", c.what, raw)
		}
	}
}

// whole reports whether the result itself lists nothing as missing.
func whole(r *run.Result) bool {
	for _, g := range r.KnownGaps {
		if g.Severity != "informational" && g.Kind != "detail_gap" {
			return false
		}
	}
	if r.CollectionFacts != nil {
		for _, s := range r.CollectionFacts.Streams {
			if s.PendingDetailGaps > 0 &&
				slices.ContainsFunc(r.KnownGaps,
					func(g run.KnownGap) bool { return g.Kind == "detail_gap" && *g.Stream == s.Stream }) {
				return false
			}
			if s.PendingDetailGaps > 0 && r.Outcome == run.OutcomePartial { // of an earlier run: only where it may be retried
				return false
			}
			if s.Considered != nil && s.Covered != nil && *s.Covered < *s.Considered {
				return false
			}
		}
	}
	return r.RecordsPermanentlyRejected == 0 && r.RecordsUnresolvedRetryable == 0
}

// counts are the numbers of records that batches, results and terminal events have.
type counts struct {
	Attempted  int64 `json:"records_attempted"`
	Accepted   int64 `json:"records_accepted"`
	Flushed    int64 `json:"records_flushed"`
	Rejected   int64 `json:"records_permanently_rejected"`
	Unresolved int64 `json:"records_unresolved_retryable"`
}

// checkCounts compares the result with the terminal event and the batches, and
// the gaps of both.
func checkCounts(t tester, p *played) {
	t.Helper()
	r := p.result
	want := counts{r.RecordsAttempted, r.RecordsAccepted, r.RecordsFlushed, r.RecordsPermanentlyRejected,
		r.RecordsUnresolvedRetryable}
	var batches counts
	for _, e := range p.events {
		if e.Type != "run.batch_ingested" {
			continue
		}
		var b counts
		if err := json.Unmarshal(e.Data, &b); err != nil {
			t.Fatal(err)
		}
		batches.Attempted += b.Attempted
		batches.Accepted += b.Accepted
		batches.Flushed += b.Flushed
		batches.Rejected += b.Rejected
	}
	// A batch whose flush failed was attempted and has no event.
	if batches.Attempted > want.Attempted || batches.Accepted != want.Accepted || batches.Rejected != want.Rejected {
		t.Errorf("batches %+v, result %+v", batches, want)
	}
	last := p.events[len(p.events)-1]
	var d struct {
		counts
		Emitted   int64          `json:"records_emitted"`
		Dropped   int64          `json:"buffered_records_dropped"`
		Status    string         `json:"checkpoint_commit_status"`
		Staged    int            `json:"state_streams_staged"`
		Committed int            `json:"state_streams_committed"`
		Reason    *string        `json:"reason"`
		Gaps      []run.KnownGap `json:"known_gaps"`
		Withheld  []string       `json:"state_streams_withheld"`
	}
	if err := json.Unmarshal(last.Data, &d); err != nil {
		t.Fatal(err)
	}
	s := r.CheckpointSummary
	if d.counts != want || d.Emitted != r.RecordsEmitted || d.Dropped != s.BufferedRecordsDropped ||
		d.Status != s.CommitStatus ||
		d.Staged != s.StateStreamsStaged || d.Committed != s.StateStreamsCommitted ||
		len(d.Gaps) != min(len(r.KnownGaps), 50) || !slices.Equal(d.Withheld, s.StateStreamsWithheld) {
		t.Errorf("terminal event %s does not agree with the result", last.Data)
	}
	if (d.Reason == nil) != (r.TerminalReason == nil) || d.Reason != nil && *d.Reason != *r.TerminalReason {
		t.Errorf("terminal event %s has another reason than the result", last.Data)
	}
	if r.RecordsEmitted < r.RecordsAttempted || r.RecordsEmitted != r.RecordsAttempted-r.RecordsUnresolvedRetryable+
		s.BufferedRecordsDropped &&
		r.RecordsEmitted != r.RecordsAttempted+s.BufferedRecordsDropped {
		t.Errorf("emitted %d, attempted %d, dropped %d", r.RecordsEmitted, r.RecordsAttempted, s.BufferedRecordsDropped)
	}
	checkTerminal(t, last, r)
}

// checkTerminal checks that the last event agrees with the result.
func checkTerminal(t tester, last store.Event, r *run.Result) {
	t.Helper()
	want := "run.failed"
	switch {
	case r.Status == abi.Succeeded:
		want = "run.completed"
	case r.CancelCause != "":
		want = "run.cancelled"
	}
	if last.Type != want || last.Status != r.Status {
		t.Errorf("the last event is %s with status %s, the result says %s", last.Type, last.Status, r.Status)
	}
}

// checkGaps checks the known gaps that the host appends when a run ends: they come last.
func checkGaps(t tester, r *run.Result) {
	t.Helper()
	var want []string
	if r.Status == abi.Failed {
		want = append(want, "run_failed "+*r.TerminalReason)
	}
	if s := r.CheckpointSummary.CommitStatus; s == "not_committed" || s == "partially_committed" {
		want = append(want, "checkpoint_commit "+s)
	}
	var got []string
	for i, g := range r.KnownGaps {
		if g.Kind == "run_failed" || g.Kind == "checkpoint_commit" {
			got = append(got, g.Kind+" "+g.Reason)
			if i < len(r.KnownGaps)-len(want) {
				t.Errorf("gap %s is number %d of %d", g.Kind, i+1, len(r.KnownGaps))
			}
		}
		if len([]rune(g.Message)) > 200 || len([]rune(g.Reason)) > 200 {
			t.Errorf("gap with long texts: %+v", g)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("closing gaps %q, want %q", got, want)
	}
}

// checkStore checks the store after a run: what is stored was announced, cursors were
// advanced, and the connection is free.
func (g *stage) checkStore(t tester, p *played) {
	t.Helper()
	ctx := context.Background()
	st := g.host.Store
	leases, err := st.Leases(ctx)
	if err != nil || len(leases) > 0 {
		t.Errorf("leases after the run: %v %v", leases, err)
	}
	if pending, err := st.Pending(ctx, p.result.RunID); err != nil || len(pending) > 0 {
		t.Errorf("open questions after the run: %v %v", pending, err)
	}
	rec, err := st.Run(ctx, p.result.RunID)
	if err != nil || rec.Status != p.result.Status || rec.Phase != "" || rec.FinishedAt == nil {
		t.Errorf("run record %+v: %v", rec, err)
	}
	advanced := map[store.Stream]string{}
	for _, e := range p.events {
		if e.Type == "run.state_advanced" {
			var d struct{ Cursor json.RawMessage }
			if err := json.Unmarshal(e.Data, &d); err != nil {
				t.Fatal(err)
			}
			advanced[e.Stream] = string(d.Cursor)
		}
	}
	if len(advanced) != p.result.CheckpointSummary.StateStreamsCommitted {
		t.Errorf("%d cursors advanced, the result says %d", len(advanced), p.result.CheckpointSummary.StateStreamsCommitted)
	}
	states, err := st.States(ctx, g.connection, p.events[0].GrantID)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		_, now := advanced[s.Stream]
		if now != (s.RunID == p.result.RunID) {
			t.Errorf("state of %s is of run %s; advanced by this run: %v", s.Stream, s.RunID, now)
		}
		delete(advanced, s.Stream)
	}
	if len(advanced) > 0 {
		t.Errorf("advanced and not stored: %v", advanced)
	}
}
