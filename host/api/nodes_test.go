package api_test

import (
	"regexp"
	"slices"
	"testing"
)

var interruptID = regexp.MustCompile(`^int_[0-9A-HJKMNP-TV-Z]{26}$`)

// Every event of a run names its node, unless it is about the run itself,
// whichever vocabulary it is of. Ids of interrupts are opaque.
func TestNodeOfEvents(t *testing.T) {
	c := served(t)
	run := c.do("POST", "/v1/runs", `{"workflowId":"conformance-approval"}`).want(201).text("runId")
	eventually(t, "the question", func() bool {
		return c.do("GET", "/v1/runs/"+run, nil).want(200).text("status") == "waiting-approval"
	})
	if id := c.do("GET", "/v1/runs/"+run, nil).text("interrupt", "interruptId"); !interruptID.MatchString(id) {
		t.Errorf("interrupt %q", id)
	}
	c.do("POST", "/v1/runs/"+run+"/approvals/gate", `{"action":"accept"}`).want(200)
	eventually(t, "the end", func() bool {
		return c.do("GET", "/v1/runs/"+run, nil).want(200).text("status") == "completed"
	})
	ofRun := []string{"run.started", "lease.acquired", "run.completed"}
	seen := map[string]bool{}
	for _, e := range c.do("GET", "/v1/runs/"+run+"/events/poll", nil).want(200).list("events") {
		typ, node := member(e, "type").(string), member(e, "nodeId")
		seen[typ] = true
		if of := slices.Contains(ofRun, typ); of && node != nil || !of && node != "gate" {
			t.Errorf("%s: node %v", typ, node)
		}
	}
	for _, typ := range []string{"run.interaction_required", "run.assistance_requested", "run.interaction_completed", "run.assistance_resolved", "interrupt.requested"} {
		if !seen[typ] {
			t.Errorf("no %s", typ)
		}
	}
}
