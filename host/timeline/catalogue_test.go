package timeline_test

import (
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/timeline"
)

// marks is the catalogue as a table: vocabulary, U, S, M, D, and the types.
const marks = `
O u s . d | run.started run.completed run.failed run.cancelled run.paused run.resumed node.completed node.failed node.skipped
O u s . d | node.suspended interrupt.requested interrupt.resolved approval.requested approval.received
O u s . d | clarification.requested clarification.resolved artifact.created
O . ~ . d | node.started node.resumed node.cancelled node.retried
O . . m d | output.chunk
O . . . d | log.appended version.pinned cap.breached
O . . . d | lease.acquired lease.renewed lease.lost
R . ~ . d | run.progress_reported run.batch_ingested run.state_staged run.state_advanced run.state_commit_failed
R . ~ . d | run.detail_coverage_declared run.detail_gap_recorded run.detail_gap_recovered
R . ~ . d | run.stream_skipped run.interaction_required run.interaction_completed run.cancel_requested
R . ~ . d | run.assistance_requested run.assistance_updated run.assistance_resolved run.assistance_cancelled run.assistance_timed_out run.assistance_escalated
R . ~ . d | run.browser_surface_requested run.browser_surface_queued run.browser_surface_starting run.browser_surface_ready
R . ~ . d | run.browser_surface_probe_failed run.browser_surface_failed run.browser_surface_released run.browser_surface_lost
R . . . d | run.browser_action run.browser_egress_denied run.browser_cookie_handoff run.sealed_value_used run.suspended
R . . . d | run.stream_session_requested run.stream_session_opened run.stream_session_resolved run.stream_reach_failed
`

func TestCatalogue(t *testing.T) {
	n := 0
	for _, l := range strings.Split(strings.TrimSpace(marks), "\n") {
		head, types, _ := strings.Cut(l, "|")
		want := strings.Join(strings.Fields(head), "")
		for _, name := range strings.Fields(types) {
			n++
			e, known := timeline.Lookup(timeline.Type(name))
			if !known {
				t.Errorf("%s is not in the catalogue", name)
				continue
			}
			if got := shown(e); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	}
	seen := map[timeline.Type]bool{}
	for _, e := range timeline.Catalogue() {
		if seen[e.Type] {
			t.Errorf("%s stands twice", e.Type)
		}
		seen[e.Type] = true
	}
	if len(seen) != n {
		t.Errorf("catalogue has %d types, want %d", len(seen), n)
	}
}

func shown(e timeline.Entry) string {
	mark := func(on bool, c string) string {
		if on {
			return c
		}
		return "."
	}
	return string(e.Vocabulary) + mark(e.Modes.Has(timeline.Updates), "u") + []string{".", "s", "~"}[e.Snapshot] +
		mark(e.Modes.Has(timeline.Messages), "m") + mark(e.Modes.Has(timeline.Debug), "d")
}

func TestUnknownTypeIsShownInDebugOnly(t *testing.T) {
	e, known := timeline.Lookup("workflow.invented")
	if known || shown(e) != "R...d" {
		t.Errorf("unknown type is %s, known %v", shown(e), known)
	}
}

func TestParseModes(t *testing.T) {
	for text, want := range map[string]timeline.Modes{
		"updates": timeline.Updates, "values": timeline.Values, "debug,messages": timeline.Debug | timeline.Messages,
		"updates,updates": timeline.Updates, "values,values": timeline.Values,
		"": 0, "updates,": 0, "values,debug": 0, "Updates": 0, " updates": 0, "updates,nonsense": 0,
	} {
		got, err := timeline.ParseModes(text)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
		if bad, ok := err.(*timeline.ModeError); err != nil && (!ok || len(bad.Supported) != 4) {
			t.Errorf("%q: error %T %v", text, err, err)
		}
	}
}

func TestFilter(t *testing.T) {
	f, err := timeline.ParseTypes("run.*,node.started")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[timeline.Type]bool{"run.started": true, "run.batch_ingested": true, "node.started": true,
		"node.completed": false, "lease.lost": false} {
		if f.Admits(name) != want {
			t.Errorf("%s admitted: %v", name, !want)
		}
	}
	f.OpenwopOnly = true
	if f.Admits("run.batch_ingested") || !f.Admits("run.started") || f.Admits("run.invented") {
		t.Error("vocabulary=openwop admits a type of the run protocol")
	}
	for _, bad := range []string{",", "a,,b", "Run.started", "r*n", "*x", strings.Repeat("a", 65),
		strings.Repeat("a,", 65) + "a"} {
		if _, err := timeline.ParseTypes(bad); err == nil {
			t.Errorf("%.20q was taken", bad)
		}
	}
	if _, err := timeline.ParseVocabulary("other"); err == nil {
		t.Error("vocabulary other was taken")
	}
}
