package telemetry_test

import (
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/telemetry"
)

// Each counter counts under its own labels, one that nothing raised is shown as
// 0, and what is missing or odd changes nothing.
func TestBrowserCounters(t *testing.T) {
	m := telemetry.NewMetrics("1.2.3", "abc")
	for range 2 {
		m.Browser("actions_total", "action", "click", "category", "Selection", "action_type", "side_effect",
			"result", "verified")
	}
	m.Browser("recovery_total", "class", "ExecutionFailure", "strategy", "state_refresh", "result", "success")
	m.Browser("stale_reads_total")
	m.Browser("recovery_total", "class")
	text := written(t, m)
	for _, line := range []string{
		`sluice_browser_actions_total{action="click",action_type="side_effect",category="Selection",result="verified"} 2`,
		`sluice_browser_recovery_total{class="ExecutionFailure",result="success",strategy="state_refresh"} 1`,
		`sluice_browser_recovery_total{class="other",result="other",strategy="other"} 1`,
		`sluice_browser_network_inspections_total{action_type="local_state"} 0`,
		"sluice_browser_stale_reads_total 1", "sluice_browser_events_undecodable_total 0",
		"sluice_browser_first_pass_verified_total 0", "sluice_browser_identical_retry_blocked_total 0",
		"sluice_browser_coordinate_fallback_total 0",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is not in\n%s", line, text)
		}
	}
}

// The lists of labels have the words of the engine: a verb that is not in them would
// be counted as other.
func TestBrowserLabelsAreComplete(t *testing.T) {
	m := telemetry.NewMetrics("1.2.3", "abc")
	for _, v := range []engine.Verb{engine.Navigate, engine.Click, engine.Type, engine.Fill, engine.Clear, engine.Press,
		engine.Select, engine.Check,
		engine.Adjust, engine.Scroll, engine.Hover, engine.Upload} {
		for _, effect := range []string{engine.LocalState, engine.SideEffect} {
			m.Browser("actions_total", "action", string(v), "category", v.Category(), "action_type", effect,
				"result", engine.Verified)
		}
	}
	for _, class := range []string{engine.TargetResolutionFailure, engine.ExecutionFailure, engine.VerificationFailure,
		engine.ControlConvergenceFailure, engine.SemanticMismatchFailure} {
		for _, strategy := range []string{engine.ReResolve, engine.AlternateCandidate, engine.StateRefresh,
			engine.RetryAdjustment, engine.StepBack} {
			m.Browser("recovery_total", "class", class, "strategy", strategy, "result", "failure")
		}
	}
	for line := range strings.Lines(written(t, m)) {
		if strings.HasPrefix(line, "sluice_browser_") && strings.Contains(line, `"other"`) {
			t.Error(line)
		}
	}
}
