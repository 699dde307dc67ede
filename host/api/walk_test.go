package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
)

// start creates a run and returns its id.
func (c *client) start(body any, options ...option) string {
	c.t.Helper()
	return c.do("POST", "/v1/runs", body, options...).want(201).text("runId")
}

type object = map[string]any

func workflow(id string) object { return object{"workflowId": id} }

// suspended waits until a run asks.
func (c *client) suspended(run string) {
	c.t.Helper()
	s := c.follow("/v1/runs/" + run + "/events")
	defer s.body.Close()
	s.until("node.suspended")
}

// ended waits for the end of a run and returns its snapshot.
func (c *client) ended(run string) *answer {
	c.t.Helper()
	c.follow("/v1/runs/" + run + "/events").rest()
	return c.do("GET", "/v1/runs/"+run, nil).want(200)
}

// What an openwop client does that has never heard of Sluice.
func TestWalk(t *testing.T) {
	c := served(t)
	id := "conformance-clarification"
	w := c.do("GET", "/v1/workflows/"+id, nil).want(200)
	node := w.text("nodes", 0, "id")
	if node != "ask" || w.text("nodes", 0, "typeId") != id || len(w.list("edges")) != 0 {
		t.Errorf("%s", w.body)
	}

	// Of parallel duplicates one creates a run, and all get its answer.
	body := object{"workflowId": id, "tags": []string{"walk"}, "metadata": object{"order": 7}, "configurable": object{"apiKey": "hunter2", "recursionLimit": 3}}
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		ids = map[string]int{}
		rep = map[string]int{}
	)
	for range 6 {
		wg.Go(func() {
			a, err := c.try("POST", "/v1/runs", body, once("walk"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil || a.status != 201 {
				t.Errorf("%v %v", a, err)
				return
			}
			ids[a.text("runId")]++
			rep[a.header.Get("openwop-Idempotent-Replay")]++
		})
	}
	wg.Wait()
	if len(ids) != 1 || rep["false"] != 1 || rep["true"] != 5 {
		t.Fatalf("%v %v", ids, rep)
	}
	a := c.do("POST", "/v1/runs", body, once("walk")).want(201)
	run := a.text("runId")
	at := "/v1/runs/" + run
	if a.header.Get("Location") != at || a.text("statusUrl") != c.base+at || a.text("eventsUrl") != c.base+at+"/events" || a.text("traceId") == "" {
		t.Errorf("%v %s", a.header, a.body)
	}
	body["tags"] = []string{"other"}
	c.do("POST", "/v1/runs", body, once("walk")).want(409, "idempotency_key_mismatch")
	if list := c.do("GET", "/v1/runs?tag=walk", nil).want(200); len(list.list("data")) != 1 || list.member("data", 0, "nodeStates") != nil {
		t.Errorf("%s", list.body)
	}

	// Three streams that are open from here to the end.
	updates, values, debug := c.follow(at+"/events"), c.follow(at+"/events?streamMode=values"), c.follow(at+"/events?streamMode=debug")
	messages := c.follow(at + "/events?streamMode=messages")
	updates.until("node.suspended")
	snap := c.do("GET", at, nil).want(200)
	if snap.text("status") != "waiting-input" || snap.text("currentNodeId") != node || snap.text("interrupt", "kind") != "clarification" ||
		snap.text("configurable", "apiKey") != "[REDACTED]" || snap.number("metadata", "order") != 7 || snap.text("sluice", "connectorName") != id {
		t.Errorf("%s", snap.body)
	}
	token := snap.text("interrupt", "interruptToken")
	if token == "" || snap.text("interrupt", "callbackUrl") != c.base+"/v1/interrupts/"+token {
		t.Fatalf("%s", snap.body)
	}
	var reads []access.Scope // Whoever may not answer gets no token
	for _, s := range all {
		if s != access.ApprovalsRespond {
			reads = append(reads, s)
		}
	}
	if less := c.as(key(t, access.NewKey{Scopes: reads})).do("GET", at, nil).want(200); less.member("interrupt", "interruptToken") != nil || less.text("interrupt", "kind") == "" {
		t.Errorf("%s", less.body)
	}

	// Reading the token changes nothing.
	for range 2 {
		p := c.as("").do("GET", "/v1/interrupts/"+token, nil).want(200)
		if p.text("kind") != "clarification" || p.text("data", "questions", 0, "id") != "q1" || p.text("key") == "" {
			t.Errorf("%s", p.body)
		}
	}
	// A value that does not fit names what is wrong and leaves it open.
	for _, wrong := range []string{`{}`, `{"resumeValue":null}`, `{"resumeValue":"x"}`, `{"resumeValue":{}}`, `{"resumeValue":{"answers":{}}}`,
		`{"resumeValue":{"answers":"SECRET"}}`, `{"resumeValue":{"answers":{"q1":77331}}}`, `{"resumeValue":{"answers":[{"id":"q1"}]}}`,
		`{"resumeValue":{"answers":[{"id":"q1","answer":"a"},{"id":"q1","answer":"b"}]}}`, `{"resumeValue":{"answers":{"q1":"a"}},"by":"me"}`} {
		for _, path := range []string{at + "/interrupts/" + node, "/v1/interrupts/" + token} {
			if strings.HasPrefix(path, "/v1/interrupts") && wrong != `{}` {
				continue // 10 a minute
			}
			a := c.do("POST", path, wrong).want(400, "validation_error")
			if strings.Contains(string(a.body), "SECRET") || strings.Contains(string(a.body), "77331") {
				t.Errorf("%s: a value came back: %s", wrong, a.body)
			}
		}
	}
	if s := c.do("GET", at, nil).text("status"); s != "waiting-input" {
		t.Errorf("a wrong answer: %s", s)
	}
	answered := c.do("POST", "/v1/interrupts/"+token, object{"resumeValue": object{"answers": object{"q1": "blue"}}}, header("Authorization", "")).want(200)
	if answered.text("runId") != run || answered.text("nodeId") != node {
		t.Errorf("%s", answered.body)
	}
	c.do("POST", "/v1/interrupts/"+token, object{"resumeValue": object{"answers": object{"q1": "red"}}}).want(409, "interrupt_already_resolved")
	c.do("POST", at+"/interrupts/"+node, object{"resumeValue": object{"answers": object{"q1": "red"}}}).want(409, "interrupt_already_resolved")
	c.do("GET", "/v1/interrupts/"+token, nil).want(409, "interrupt_already_resolved")

	// Each stream ends by itself behind the terminal event.
	if got := events(updates.rest()); !strings.HasSuffix(got, "node.completed run.completed") || strings.Contains(got, "run.interaction") {
		t.Errorf("updates: %s", got)
	}
	frames := values.rest()
	if n := len(frames); n == 0 || member(frames[n-1].data, "status") != "completed" || member(frames[0].data, "status") == "completed" {
		t.Errorf("values: %v", frames)
	}
	if got := messages.rest(); len(got) != 0 {
		t.Errorf("messages: %v", got)
	}
	whole := debug.rest()

	// The log by other ways is the same.
	page := c.do("GET", at+"/events/poll", nil).want(200).checkEvents()
	if page.member("isComplete") != true || page.text("terminalStatus") != "completed" || len(page.list("events")) != len(whole) || page.types() != events(whole) {
		t.Errorf("poll: %s", page.body)
	}
	if listed := c.do("GET", at+"/events", nil, header("Accept", "application/json")).want(200).checkEvents(); string(listed.body) != string(page.body) {
		t.Errorf("listed: %s", listed.body)
	}
	last := whole[len(whole)-1].id
	if a := c.do("GET", fmt.Sprintf("%s/events/poll?lastSequence=%d", at, last), nil).want(200); len(a.list("events")) != 0 || a.member("isComplete") != true {
		t.Errorf("%s", a.body)
	}
	if a := c.do("GET", at+"/events?types=interrupt.*&limit=1", nil, header("Accept", "application/json")).want(200); a.types() != "interrupt.resolved" {
		t.Errorf("%s", a.types())
	}
	if a := c.do("GET", at+"/events/poll?vocabulary=openwop", nil).want(200); strings.Contains(a.types(), "run.interaction") || !strings.Contains(a.types(), "clarification.resolved") {
		t.Errorf("%s", a.types())
	}
	// Going on behind an id.
	for from := int64(0); from <= last; from += 3 {
		rest := c.follow(at+"/events?streamMode=debug", header("Last-Event-ID", fmt.Sprint(from))).rest()
		if int64(len(rest)) != last-from || len(rest) > 0 && rest[0].id != from+1 {
			t.Errorf("behind %d: %s", from, events(rest))
		}
	}
	if rest := c.follow(at + "/events?streamMode=values&lastEventId=" + fmt.Sprint(last)).rest(); len(rest) != 1 || rest[0].id != last {
		t.Errorf("the baseline: %v", rest)
	}
	if rest := c.follow(at+"/events?streamMode=debug&lastEventId=0", header("Last-Event-ID", fmt.Sprint(last+100))).rest(); len(rest) != 0 {
		t.Errorf("beyond the end: %v", rest)
	}
	if rest := c.follow(at+"/events", header("Last-Event-ID", "soon")).rest(); len(rest) == 0 || rest[0].event != "run.started" {
		t.Errorf("an id that is none: %v", rest)
	}
	if rest := c.follow(at + "/events?streamMode=updates,debug&bufferMs=5000").rest(); len(rest) == 0 || rest[0].event != "batch" {
		t.Errorf("batches: %v", rest)
	}
	for q, code := range map[string]string{"streamMode=": "unsupported_stream_mode", "streamMode=updates,none": "unsupported_stream_mode",
		"streamMode=values,debug": "unsupported_stream_mode", "bufferMs=5001": "validation_error", "bufferMs=-1": "validation_error",
		"vocabulary=klingon": "validation_error", "limit=0": "validation_error", "types=x": ""} {
		if code == "" {
			continue
		}
		a := c.do("GET", at+"/events?"+q, nil).want(400, code)
		if code == "unsupported_stream_mode" && fmt.Sprint(a.member("details", "supported")) != "[updates values messages debug]" {
			t.Errorf("%s: %s", q, a.body)
		}
	}
	c.do("GET", at+"/events", nil, header("Accept", "text/html")).want(406, "not_acceptable")
	for _, q := range []string{"timeout=0", "timeout=61", "lastSequence=-1", "lastSequence=x"} {
		c.do("GET", at+"/events/poll?"+q, nil).want(400, "validation_error")
	}

	b := c.do("GET", at+"/debug-bundle", nil).want(200).checkEvents()
	if b.types() != events(whole) || b.number("metrics", "eventCount") != float64(len(whole)) || b.text("bundleVersion") != "1" ||
		b.member("run", "configurable") != nil || b.member("run", "metadata") != nil || b.header.Get("Cache-Control") != "no-store" || strings.Contains(string(b.body), "hunter2") {
		t.Errorf("%s", b.body)
	}
	// What came of it; cursors are for who may read state.
	if a := c.do("GET", at+"/result", nil).want(200); a.text("status") != "succeeded" || a.member("state") == nil {
		t.Errorf("%s", a.body)
	}
	// What comes too late.
	if a := c.do("POST", at+"/cancel", nil).want(200); a.text("status") != "completed" {
		t.Errorf("%s", a.body)
	}
	for _, verb := range []string{":pause", ":resume"} {
		if a := c.do("POST", at+verb, nil).want(409, "conflict"); a.text("details", "runStatus") != "completed" {
			t.Errorf("%s: %s", verb, a.body)
		}
	}
	c.do("POST", at+"/interaction", object{"interactionId": "x", "status": "success"}).want(409, "no_pending_interaction")
	c.do("POST", at+"/interrupts/nobody", object{"resumeValue": object{}}).want(404, "interrupt_not_found")
}

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
	if a := c.do("POST", "/v1/runs", `{"workflowId":"conformance-noop","callbackUrl":"https://x.example"}`).want(400, "validation_error"); fmt.Sprint(a.member("details", "unsupported")) != "[callbackUrl]" {
		t.Errorf("%s", a.body)
	}
	c.do("POST", "/v1/runs", `{"workflowId":"conformance-noop","tenantId":"other"}`).want(403, "forbidden")
	c.do("POST", "/v1/runs", workflow("conformance-noop"), header("X-Force-Engine-Version", "1")).want(403, "force_engine_version_forbidden")
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
	for id, inputs := range map[string]object{"conformance-noop": {"ignored": 1}, "conformance-idempotent": {"nonce": "a"}, "conformance-delay": {"delayMs": 1}} {
		s := c.ended(c.start(object{"workflowId": id, "inputs": inputs, "tenantId": "default", "scopeId": "s"}))
		if s.text("status") != "completed" || s.text("sluice", "result") != "succeeded" || s.text("completedAt") == "" {
			t.Errorf("%s: %s", id, s.body)
		}
	}
	run := c.start(workflow("conformance-failure"))
	s := c.ended(run)
	if s.text("status") != "failed" || s.text("error", "code") == "" || s.text("error", "message") == "" || s.text("sluice", "terminalReason") != s.text("error", "code") {
		t.Errorf("%s", s.body)
	}
	p := c.do("GET", "/v1/runs/"+run+"/events/poll", nil).want(200).checkEvents()
	if !strings.HasSuffix(p.types(), "node.failed run.failed") || p.text("terminalStatus") != "failed" {
		t.Errorf("%s", p.body)
	}
	if trace := c.start(workflow("conformance-noop"), header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")); trace == "" {
		t.Error("no run")
	}
}

// A decision by every way that there is; both ways of deciding complete the run.
func TestApproval(t *testing.T) {
	c := served(t)
	for name, answer := range map[string]func(run, interaction, token string) *answer{
		"interrupt, accept": func(run, _, _ string) *answer {
			return c.do("POST", "/v1/runs/"+run+"/interrupts/gate", `{"resumeValue":{"action":"accept","comment":"fine"}}`).want(200)
		},
		"interrupt, reject": func(run, _, _ string) *answer {
			return c.do("POST", "/v1/runs/"+run+"/interrupts/gate", `{"resumeValue":{"action":"reject"}}`).want(200)
		},
		"alias": func(run, _, _ string) *answer {
			return c.do("POST", "/v1/runs/"+run+"/approvals/gate", `{"action":"accept"}`).want(200)
		},
		"token": func(_, _, token string) *answer {
			return c.as("").do("POST", "/v1/interrupts/"+token, `{"resumeValue":{"action":"accept"}}`).want(200)
		},
		"native": func(run, interaction, _ string) *answer {
			return c.do("POST", "/v1/runs/"+run+"/interaction", object{"interactionId": interaction, "status": "success", "data": object{"action": "accept"}}).want(202)
		},
	} {
		t.Run(name, func(t *testing.T) {
			own := *c
			own.t = t
			run := own.start(workflow("conformance-approval"))
			own.suspended(run)
			at := "/v1/runs/" + run
			snap := own.do("GET", at, nil).want(200)
			if snap.text("status") != "waiting-approval" || snap.text("interrupt", "kind") != "approval" {
				t.Errorf("%s", snap.body)
			}
			list := own.do("GET", "/v1/assistance?runId="+run, nil).want(200)
			item := list.text("data", 0, "assistanceId")
			if len(list.list("data")) != 1 || list.text("data", 0, "progressPosture") != "blocked" || list.text("data", 0, "ownerAction") != "provide_value" || list.text("data", 0, "responseObligation") != "response_required" {
				t.Errorf("%s", list.body)
			}
			one := own.do("GET", "/v1/assistance/"+item, nil).want(200)
			interaction := one.text("interactionId")
			if one.text("raw", "message") == "" || one.header.Get("Cache-Control") != "no-store" || interaction == "" {
				t.Errorf("%s", one.body)
			}
			for _, wrong := range []string{`{"action":"refine"}`, `{"action":1}`, `{}`, `{"action":"accept","comment":5}`} {
				own.do("POST", at+"/interrupts/gate", `{"resumeValue":`+wrong+`}`).want(400, "validation_error")
				own.do("POST", at+"/approvals/gate", wrong).want(400, "validation_error")
			}
			for wrong, code := range map[string]string{`{}`: "invalid_request", `{"interactionId":" ","status":"success"}`: "invalid_request",
				`{"interactionId":"x","status":"timeout"}`: "invalid_status", `{"interactionId":"x","status":"success","data":[]}`: "invalid_request"} {
				if a := own.do("POST", at+"/interaction", wrong).want(400, "validation_error"); a.text("details", "code") != code {
					t.Errorf("%s: %s", wrong, a.body)
				}
			}
			a := own.do("POST", at+"/interaction", object{"interactionId": "another", "status": "success", "data": object{"action": "accept"}}).want(409, "interaction_id_mismatch")
			if a.text("details", "currentInteractionId") != interaction {
				t.Errorf("%s", a.body)
			}
			answer(run, interaction, snap.text("interrupt", "interruptToken"))
			if s := own.ended(run); s.text("status") != "completed" {
				t.Errorf("%s", s.body)
			}
			own.do("GET", at+"/events/poll", nil).want(200).checkEvents()
			own.do("POST", at+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`).want(409, "interrupt_already_resolved")
			own.do("POST", at+"/approvals/gate", `{"action":"accept"}`).want(409, "interrupt_already_resolved")
			if list := own.do("GET", "/v1/assistance?runId="+run, nil).want(200); len(list.list("data")) != 0 {
				t.Errorf("%s", list.body)
			}
			if list := own.do("GET", "/v1/assistance?status=resolved&runId="+run, nil).want(200); len(list.list("data")) != 1 {
				t.Errorf("%s", list.body)
			}
		})
	}
}

// Of concurrent answers exactly one is taken. A question that was answered is a
// conflict; an accepted request repeated is accepted again.
func TestOneAnswer(t *testing.T) {
	c := served(t)
	run := c.start(workflow("conformance-approval"))
	c.suspended(run)
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		statuses = map[int]int{}
	)
	for i := range 8 {
		wg.Go(func() {
			path, body := "/v1/runs/"+run+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`
			if i%2 == 0 {
				path, body = "/v1/runs/"+run+"/approvals/gate", `{"action":"reject"}`
			}
			a, err := c.try("POST", path, body)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
			if a.status == 409 && a.text("error") != "interrupt_already_resolved" {
				t.Errorf("%s", a.body)
			}
		})
	}
	wg.Wait()
	if statuses[200] != 1 || statuses[409] != 7 {
		t.Errorf("%v", statuses)
	}
	c.ended(run)

	run = c.start(workflow("conformance-approval"))
	c.suspended(run)
	interaction := c.do("GET", "/v1/assistance?runId="+run, nil).want(200).text("data", 0, "interactionId")
	body := object{"interactionId": interaction, "status": "success", "data": object{"action": "accept"}}
	c.do("POST", "/v1/runs/"+run+"/interaction", body, once("answer"+run)).want(202)
	if a := c.do("POST", "/v1/runs/"+run+"/interaction", body, once("answer"+run)).want(202); a.header.Get("openwop-Idempotent-Replay") != "true" {
		t.Error("not a replay")
	}
	c.ended(run)
}

// A question whose run was cancelled.
func TestCancelWhileAsked(t *testing.T) {
	c := served(t)
	run := c.start(workflow("conformance-approval"))
	c.suspended(run)
	at := "/v1/runs/" + run
	token := c.do("GET", at, nil).text("interrupt", "interruptToken")
	interaction := c.do("GET", "/v1/assistance?runId="+run, nil).text("data", 0, "interactionId")
	if a := c.do("POST", at+"/cancel", `{"reason":"enough","unknown":1}`).want(200); !strings.HasPrefix(a.text("status"), "cancel") { // an open body
		t.Errorf("%s", a.body)
	}
	if s := c.ended(run); s.text("status") != "cancelled" {
		t.Errorf("%s", s.body)
	}
	if a := c.do("POST", at+"/cancel", nil).want(200); a.text("status") != "cancelled" {
		t.Errorf("%s", a.body)
	}
	c.do("POST", at+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`).want(422, "interrupt_cancelled")
	c.do("POST", at+"/approvals/gate", `{"action":"accept"}`).want(409, "interrupt_cancelled")
	c.as("").do("POST", "/v1/interrupts/"+token, `{"resumeValue":{"action":"accept"}}`).want(422, "interrupt_cancelled")
	c.as("").do("GET", "/v1/interrupts/"+token, nil).want(422, "interrupt_cancelled")
	c.do("POST", at+"/interaction", object{"interactionId": interaction, "status": "success", "data": object{"action": "accept"}}).want(409, "no_pending_interaction")
	p := c.do("GET", at+"/events/poll", nil).want(200).checkEvents()
	if n := strings.Count(p.types(), "run.cancel_requested"); n != 1 || !strings.HasSuffix(p.types(), "node.cancelled run.cancelled") {
		t.Errorf("%s", p.types())
	}
}

// Tokens that are none, that were changed, that have expired.
func TestTokens(t *testing.T) {
	c := served(t)
	run := c.start(workflow("conformance-approval"))
	c.suspended(run)
	snap := c.do("GET", "/v1/runs/"+run, nil).want(200)
	token, interrupt := snap.text("interrupt", "interruptToken"), snap.text("interrupt", "interruptId")
	tokens := shared.d.Server.Access().Tokens
	none := c.as("")
	for _, bad := range []string{"x", "x.y", token + "x", "A" + token[1:], token[:len(token)-1], strings.ReplaceAll(token, ".", "%2E") + ".", strings.Repeat("a", 5000)} {
		if bad == token {
			continue
		}
		none.do("GET", "/v1/interrupts/"+bad, nil).want(404, "interrupt_not_found")
		none.do("POST", "/v1/interrupts/"+bad, `{"resumeValue":{"action":"accept"}}`).want(404, "interrupt_not_found")
	}
	foreign, _ := tokens.Sign("run_none", "gate", interrupt, time.Time{})
	none.do("GET", "/v1/interrupts/"+foreign, nil).want(404, "interrupt_not_found")
	other, _ := tokens.Sign(store.RunID(run), "gate", "int_other", time.Time{})
	none.do("GET", "/v1/interrupts/"+other, nil).want(404, "interrupt_not_found")
	old, _ := tokens.Sign(store.RunID(run), "gate", interrupt, time.Now().Add(-time.Second))
	none.do("GET", "/v1/interrupts/"+old, nil).want(410, "interrupt_expired")
	none.do("POST", "/v1/interrupts/"+old, `{"resumeValue":{"action":"accept"}}`).want(410, "interrupt_expired")
	var last *answer
	for range 11 {
		last = none.do("POST", "/v1/interrupts/"+token, `{"resumeValue":{"action":"none"}}`)
	}
	last.want(429, "rate_limited")
	if last.header.Get("Retry-After") == "" || last.number("details", "retryAfterMs") <= 0 {
		t.Errorf("%v %s", last.header, last.body)
	}
	c.do("POST", "/v1/runs/"+run+"/cancel", nil).want(200)
	c.ended(run)
}

// paused waits until a snapshot says so.
func (c *client) status(run, status string) {
	c.t.Helper()
	s := c.follow("/v1/runs/" + run + "/events?streamMode=values")
	defer s.body.Close()
	for {
		f, ok := s.next()
		if !ok {
			c.t.Fatalf("the run ended before it was %s", status)
		}
		if member(f.data, "status") == status {
			return
		}
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
	if a := c.do("POST", at+":pause", `{"drainPolicy":"immediate","reason":"lunch"}`).want(202); a.text("status") != "paused" || !milliseconds.MatchString(a.text("pausedAt")) {
		t.Errorf("%s", a.body)
	}
	c.status(run, "paused")
	if a := c.do("POST", at+":pause", nil).want(409, "conflict"); a.text("details", "runStatus") != "paused" {
		t.Errorf("%s", a.body)
	}
	if a := c.do("POST", at+":fork", `{"fromSeq":0,"mode":"branch"}`).want(409, "conflict"); a.text("details", "runStatus") != "paused" {
		t.Errorf("%s", a.body)
	}
	if a := c.do("POST", at+":resume", `{"reason":"back"}`).want(202); a.text("status") != "running" || !milliseconds.MatchString(a.text("resumedAt")) {
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

// A question that is answered while the run is paused.
func TestAnswerWhilePaused(t *testing.T) {
	c := served(t)
	run := c.start(workflow("conformance-approval"))
	c.suspended(run)
	at := "/v1/runs/" + run
	c.do("POST", at+":pause", nil).want(202)
	c.status(run, "paused")
	if a := c.do("POST", at+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`).want(200); a.text("status") != "paused" {
		t.Errorf("%s", a.body)
	}
	c.do("POST", at+":resume", nil).want(202)
	if s := c.ended(run); s.text("status") != "completed" {
		t.Errorf("%s", s.body)
	}
	if p := c.do("GET", at+"/events/poll", nil).want(200).checkEvents(); !strings.Contains(p.types(), "run.resumed node.resumed") {
		t.Errorf("%s", p.types())
	}
}

// With X-Dedup one run of a scope id is active.
func TestDedup(t *testing.T) {
	c := served(t)
	body := object{"workflowId": "conformance-approval", "scopeId": "invoice-7"}
	run := c.start(body, header("X-Dedup", "enforce"))
	a := c.do("POST", "/v1/runs", body, header("X-Dedup", "enforce")).want(409, "run_already_active")
	if a.text("details", "activeRunId") != run || a.text("details", "activeHost") != "cloud" || a.number("details", "retryAfter") < 1 ||
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
		`{}`: "400 validation_error", `{"fromSeq":-1,"mode":"branch"}`: "400 validation_error", `{"fromSeq":1.5,"mode":"branch"}`: "400 validation_error",
		`{"fromSeq":"0","mode":"branch"}`: "400 validation_error", `{"fromSeq":0,"mode":"jump"}`: "400 validation_error",
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
	a := c.do("POST", at, `{"fromSeq":0,"mode":"branch","runOptionsOverlay":{"tags":["branch"]}}`, once("fork"+run)).want(201)
	if again := c.do("POST", at, `{"fromSeq":0,"mode":"branch","runOptionsOverlay":{"tags":["branch"]}}`, once("fork"+run)).want(201); string(again.body) != string(a.body) {
		t.Errorf("%s, then %s", a.body, again.body)
	}
	branch := a.text("runId")
	if branch == run || a.text("sourceRunId") != run || a.text("mode") != "branch" || a.text("eventsUrl") != c.base+"/v1/runs/"+branch+"/events" || a.header.Get("Location") == "" {
		t.Errorf("%s", a.body)
	}
	if s := c.ended(branch); s.text("status") != "completed" || s.text("sluice", "forkedFrom", "runId") != run && s.text("sluice", "forkedFrom", "run_id") != run {
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
	for q, want := range map[string]int{"&status=completed": 3, "&outcome=complete": 3, "&outcome=partial": 0, "&status=failed": 0, "&status=failed&status=completed": 3, "&triggerKind=scheduled": 0,
		"&triggerKind=manual": 3, "&connectorName=conformance-noop": 3, "&connectorName=ask": 0, "&createdAfter=2000-01-01T00:00:00Z": 3, "&createdBefore=2000-01-01T00:00:00Z": 0} {
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
