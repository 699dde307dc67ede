package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
)

// What creation refuses, by name and without a value.
func TestCreateRefused(t *testing.T) {
	c := served(t)
	long := strings.Repeat("x", 300)
	for body, field := range map[string]string{
		`{}`:                            "workflowId",
		`{"workflowId":"SECRET"}`:       "workflowId",
		`{"workflowId":"` + long + `"}`: "workflowId",
		`{"workflowId":"conformance-noop","inputs":[]}`:                                            "inputs",
		`{"workflowId":"conformance-noop","inputs":{"collectionMode":"SECRET"}}`:                   "inputs.collectionMode",
		`{"workflowId":"conformance-noop","inputs":{"persistState":"SECRET"}}`:                     "inputs.persistState",
		`{"workflowId":"conformance-noop","configurable":7}`:                                       "configurable",
		`{"workflowId":"conformance-noop","configurable":{"recursionLimit":0}}`:                    "configurable.recursionLimit",
		`{"workflowId":"conformance-noop","configurable":{"sluice":{"budgets":{"SECRET":1}}}}`:     "configurable.sluice.budgets",
		`{"workflowId":"conformance-noop","configurable":{"sluice":{"budgets":{"total_ms":0}}}}`:   "configurable.sluice.budgets",
		`{"workflowId":"conformance-noop","tags":[""]}`:                                            "tags",
		`{"workflowId":"conformance-noop","tags":["` + long + `"]}`:                                "tags",
		`{"workflowId":"conformance-noop","tags":[` + strings.Repeat(`"a",`, 100) + `"a"]}`:        "tags",
		`{"workflowId":"conformance-noop","tags":"SECRET"}`:                                        "tags",
		`{"workflowId":"conformance-noop","metadata":[]}`:                                          "metadata",
		`{"workflowId":"conformance-noop","metadata":{"a":"` + strings.Repeat("x", 50_001) + `"}}`: "metadata",
		`{"workflowId":"conformance-delay","inputs":{"delayMs":30001}}`:                            "inputs.delayMs",
		`{"workflowId":"conformance-delay","inputs":{"delayMs":-1}}`:                               "inputs.delayMs",
		`{"workflowId":"conformance-delay","inputs":{"delayMs":"SECRET"}}`:                         "inputs.delayMs",
		`{"workflowId":"conformance-cancellable","inputs":{"delayMs":0}}`:                          "inputs.delayMs",
	} {
		a := c.do("POST", "/v1/runs", body).want(400, "validation_error")
		named := a.text("details", "fields", 0, "path")
		if named == "" {
			named = a.text("details", "field")
		}
		if named != field || strings.Contains(string(a.body), "SECRET") {
			t.Errorf("%.80s: %s, want %s", body, a.body, field)
		}
	}
	if a := c.do("POST", "/v1/runs", `{"workflowId":"conformance-noop","callbackUrl":"https://x.example"}`).want(400,
		"validation_error"); fmt.Sprint(a.member("details", "unsupported")) != "[callbackUrl]" {
		t.Errorf("%s", a.body)
	}
	c.do("POST", "/v1/runs", `{"workflowId":"conformance-noop","tenantId":"other"}`).want(403, "forbidden")
	c.do("POST", "/v1/runs", workflow("conformance-noop"), header("X-Force-Engine-Version", "1")).want(403,
		"force_engine_version_forbidden")
	c.do("POST", "/v1/runs", workflow("conformance-noop"), header("X-Dedup", "maybe")).want(400, "validation_error")
	c.do("POST", "/v1/runs", workflow("conformance-noop"), header("X-Dedup", "enforce")).want(400, "validation_error")
	c.do("POST", "/v1/runs", workflow("ask")).want(409, "connection_not_ready") // installed, without a connection
	// A key for certain connections starts nothing else, not even what needs none.
	some := c.as(key(t, access.NewKey{Scopes: all, ConnectionIDs: []store.ConnectionID{"another"}}))
	some.do("POST", "/v1/runs", workflow("conformance-noop")).want(400, "validation_error")
}

// What the others of the conformance connectors do.
func TestConformanceRuns(t *testing.T) {
	c := served(t)
	for id, inputs := range map[string]object{"conformance-noop": {"ignored": 1, "record": "no option of a run"},
		"conformance-idempotent": {"nonce": "a"}, "conformance-delay": {"delayMs": 1}} {
		s := c.ended(c.start(object{"workflowId": id, "inputs": inputs, "tenantId": "default", "scopeId": "s"}))
		if s.text("status") != "completed" || s.text("sluice", "result") != "succeeded" || s.text("completedAt") == "" {
			t.Errorf("%s: %s", id, s.body)
		}
	}
	run := c.start(workflow("conformance-failure"))
	s := c.ended(run)
	if s.text("status") != "failed" || s.text("error", "code") == "" || s.text("error", "message") == "" ||
		s.text("sluice", "terminalReason") != s.text("error", "code") {
		t.Errorf("%s", s.body)
	}
	p := c.do("GET", "/v1/runs/"+run+"/events/poll", nil).want(200).checkEvents()
	if !strings.HasSuffix(p.types(), "node.failed run.failed") || p.text("terminalStatus") != "failed" {
		t.Errorf("%s", p.body)
	}
	if trace := c.start(workflow("conformance-noop"),
		header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")); trace == "" {
		t.Error("no run")
	}
}

// Pause, resume and cancel of a run that works.
func TestPause(t *testing.T) {
	c := served(t)
	run := c.start(workflow("conformance-cancellable"))
	at := "/v1/runs/" + run
	c.do("POST", at+":pause", `{"drainPolicy":"never"}`).want(400, "validation_error")
	c.status(run, "running")
	c.do("POST", at+":resume", nil).want(409, "conflict")
	if a := c.do("POST", at+":pause",
		`{"drainPolicy":"immediate","reason":"lunch"}`).want(202); a.text("status") != "paused" ||
		!milliseconds.MatchString(a.text("pausedAt")) {
		t.Errorf("%s", a.body)
	}
	c.status(run, "paused")
	if a := c.do("POST", at+":pause", nil).want(409, "conflict"); a.text("details", "runStatus") != "paused" {
		t.Errorf("%s", a.body)
	}
	if a := c.do("POST", at+":fork", `{"fromSeq":0,"mode":"branch"}`).want(409, "conflict"); a.text("details",
		"runStatus") != "paused" {
		t.Errorf("%s", a.body)
	}
	if a := c.do("POST", at+":resume", `{"reason":"back"}`).want(202); a.text("status") != "running" ||
		!milliseconds.MatchString(a.text("resumedAt")) {
		t.Errorf("%s", a.body)
	}
	c.status(run, "running")
	c.do("POST", at+"/cancel", nil).want(200)
	if s := c.ended(run); s.text("status") != "cancelled" {
		t.Errorf("%s", s.body)
	}
	p := c.do("GET", at+"/events/poll", nil).want(200).checkEvents()
	if !strings.Contains(p.types(), "run.paused run.resumed") {
		t.Errorf("%s", p.types())
	}
	log := c.do("GET", "/v1/audit?action=run.steered&target="+run, nil).want(200)
	if len(log.list("data")) != 3 {
		t.Errorf("%s", log.body)
	}
}

// With X-Dedup one run of a scope id is active.
func TestDedup(t *testing.T) {
	c := served(t)
	body := object{"workflowId": "conformance-approval", "scopeId": "invoice-7"}
	run := c.start(body, header("X-Dedup", "enforce"))
	a := c.do("POST", "/v1/runs", body, header("X-Dedup", "enforce")).want(409, "run_already_active")
	if a.text("details", "activeRunId") != run || a.text("details", "activeHost") != "cloud" ||
		a.number("details", "retryAfter") < 1 ||
		a.header.Get("Retry-After") != fmt.Sprint(a.number("details", "retryAfter")) {
		t.Errorf("%v %s", a.header, a.body)
	}
	c.do("POST", "/v1/runs/"+run+"/cancel", nil).want(200)
	c.ended(run)
	run = c.start(body, header("X-Dedup", "enforce"))
	c.do("POST", "/v1/runs/"+run+"/cancel", nil).want(200)
	c.ended(run)
}

// Branches, and what is refused.
func TestFork(t *testing.T) {
	c := served(t)
	run := c.start(workflow("conformance-noop"))
	last := c.ended(run).number("sluice", "lastSequence")
	at := "/v1/runs/" + run + ":fork"
	for body, want := range map[string]string{
		`{}`: "400 validation_error", `{"fromSeq":-1,"mode":"branch"}`: "400 validation_error",
		`{"fromSeq":1.5,"mode":"branch"}`: "400 validation_error", `{"fromSeq":"0","mode":"branch"}`: "400 validation_error",
		`{"fromSeq":0,"mode":"jump"}`:                                      "400 validation_error",
		`{"fromSeq":0,"mode":"replay","runOptionsOverlay":{"tags":["a"]}}`: "400 validation_error",
		`{"fromSeq":0,"mode":"branch","runOptionsOverlay":{"tags":[""]}}`:  "400 validation_error",
		`{"fromSeq":0,"mode":"branch","runOptionsOverlay":{"inputs":[]}}`:  "400 validation_error",
		`{"fromSeq":0,"mode":"replay"}`:                                    "422 replay_unavailable",
		fmt.Sprintf(`{"fromSeq":%v,"mode":"branch"}`, last+1):              "422 validation_error",
	} {
		a := c.do("POST", at, body)
		if got := fmt.Sprint(a.status, " ", a.text("error")); got != want {
			t.Errorf("%s: %s, want %s", body, a.body, want)
		}
	}
	c.do("POST", "/v1/runs/run_none:fork", `{"fromSeq":0,"mode":"branch"}`).want(404, "not_found")
	a := c.do("POST", at, `{"fromSeq":0,"mode":"branch","runOptionsOverlay":{"tags":["branch"]}}`,
		once("fork"+run)).want(201)
	if again := c.do("POST", at, `{"fromSeq":0,"mode":"branch","runOptionsOverlay":{"tags":["branch"]}}`,
		once("fork"+run)).want(201); string(again.body) != string(a.body) {
		t.Errorf("%s, then %s", a.body, again.body)
	}
	branch := a.text("runId")
	if branch == run || a.text("sourceRunId") != run || a.text("mode") != "branch" ||
		a.text("eventsUrl") != c.base+"/v1/runs/"+branch+"/events" || a.header.Get("Location") == "" {
		t.Errorf("%s", a.body)
	}
	if s := c.ended(branch); s.text("status") != "completed" || s.text("sluice", "forkedFrom", "runId") != run &&
		s.text("sluice", "forkedFrom", "run_id") != run {
		t.Errorf("%s", s.body)
	}
}

// Runs by what they are.
func TestListRuns(t *testing.T) {
	c := served(t)
	var runs []string
	for range 3 {
		runs = append(runs, c.start(object{"workflowId": "conformance-noop", "tags": []string{t.Name()}}))
	}
	for _, run := range runs {
		c.ended(run)
	}
	at, cursor, n := "/v1/runs?limit=2&tag="+t.Name(), "", 0
	for {
		a := c.do("GET", at+cursor, nil).want(200)
		for i := range a.list("data") {
			if n++; a.text("data", i, "runId") != runs[len(runs)-n] || a.member("data", i, "variables") != nil {
				t.Errorf("%s", a.body)
			}
		}
		if a.text("nextCursor") == "" {
			break
		}
		cursor = "&cursor=" + a.text("nextCursor")
	}
	if n != 3 {
		t.Errorf("%d runs", n)
	}
	for q, want := range map[string]int{"&status=completed": 3, "&outcome=complete": 3, "&outcome=partial": 0,
		"&status=failed": 0, "&status=failed&status=completed": 3, "&triggerKind=scheduled": 0,
		"&triggerKind=manual": 3, "&connectorName=conformance-noop": 3, "&connectorName=ask": 0,
		"&createdAfter=2000-01-01T00:00:00Z": 3, "&createdBefore=2000-01-01T00:00:00Z": 0} {
		if a := c.do("GET", "/v1/runs?tag="+t.Name()+q, nil).want(200); len(a.list("data")) != want {
			t.Errorf("%s: %d", q, len(a.list("data")))
		}
	}
	for _, q := range []string{"status=odd", "outcome=odd", "triggerKind=x", "createdAfter=x", "limit=501", "cursor=x"} {
		if a := c.do("GET", "/v1/runs?"+q, nil); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d", q, a.status)
		}
	}
}
