package api_test

import "testing"

// The variables of a conformance connector are its settings, with their
// defaults.
func TestWorkflowDefaults(t *testing.T) {
	c := served(t)
	for id, want := range map[string]float64{"conformance-delay": 1000, "conformance-cancellable": 30_000} {
		a := c.do("GET", "/v1/workflows/"+id, nil).want(200)
		if name, got := a.text("variables", 0, "name"), a.number("variables", 0, "defaultValue"); name != "delayMs" || got != want {
			t.Errorf("%s: %s %v", id, name, got)
		}
	}
	a := c.do("GET", "/v1/workflows/conformance-idempotent", nil).want(200)
	if v, _ := a.member("variables", 0).(map[string]any); v == nil || v["defaultValue"] != nil {
		t.Errorf("%s", a.body)
	}
}

// The limits that clients of the API meet stand under the names of the
// specification.
func TestPublishedLimits(t *testing.T) {
	a := served(t).do("GET", "/.well-known/openwop", nil).want(200)
	total := a.number("extensions", "sluice", "limits", "budget.total")
	for name, want := range map[string]float64{"maxRequestBodyBytes": 1 << 20, "maxRunDurationSec": total / 1000, "subscribersPerRun": 32,
		"subscribersPerKey": 128, "subscribers": 1024, "requestsPerSecond": 100_000, "requestBurst": 100_000, "loginsPerMinute": 5, "tokenPostsPerMinute": 10,
		"connectionsPerAddress": 1000, "connections": 4096} {
		if got := a.number("extensions", "sluice", "limits", name); got != want || got == 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
