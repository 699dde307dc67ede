package api_test

import "testing"

// A parameter without a value is not absent.
func TestBlankParameters(t *testing.T) {
	c := served(t)
	run := c.do("POST", "/v1/runs", `{"workflowId":"conformance-noop"}`).want(201).text("runId")
	for path, names := range map[string][]string{
		"/events":      {"bufferMs", "vocabulary", "types", "after", "before", "limit"},
		"/events/poll": {"lastSequence", "timeout", "vocabulary"},
	} {
		for _, name := range names {
			a := c.do("GET", "/v1/runs/"+run+path+"?"+name+"=", nil, header("Accept", "application/json")).want(400, "validation_error")
			if got := a.text("details", "fields", 0, "path"); got != "query."+name {
				t.Errorf("%s %s: says %q", path, name, got)
			}
		}
	}
	c.do("GET", "/v1/runs/"+run+"/events?streamMode=", nil).want(400, "unsupported_stream_mode")
	c.do("GET", "/v1/runs/"+run+"/events?lastEventId=", nil, header("Accept", "application/json")).want(200)
	c.do("GET", "/v1/runs/"+run+"/events/poll?timeout=1&vocabulary=full", nil, header("Accept", "application/json")).want(200) // with values all is well
}
