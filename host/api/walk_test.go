package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host/access"
)

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
	body := object{"workflowId": id, "tags": []string{"walk"}, "metadata": object{"order": 7},
		"configurable": object{"apiKey": "hunter2", "recursionLimit": 3}}
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
	if a.header.Get("Location") != at || a.text("statusUrl") != c.base+at || a.text("eventsUrl") != c.base+at+"/events" ||
		a.text("traceId") == "" {
		t.Errorf("%v %s", a.header, a.body)
	}
	body["tags"] = []string{"other"}
	c.do("POST", "/v1/runs", body, once("walk")).want(409, "idempotency_key_mismatch")
	if list := c.do("GET", "/v1/runs?tag=walk", nil).want(200); len(list.list("data")) != 1 ||
		list.member("data", 0, "nodeStates") != nil {
		t.Errorf("%s", list.body)
	}

	// Three streams that are open from here to the end.
	updates, values, debug := c.follow(at+"/events"), c.follow(at+"/events?streamMode=values"),
		c.follow(at+"/events?streamMode=debug")
	messages := c.follow(at + "/events?streamMode=messages")
	updates.until("node.suspended")
	snap := c.do("GET", at, nil).want(200)
	if snap.text("status") != "waiting-input" || snap.text("currentNodeId") != node ||
		snap.text("interrupt", "kind") != "clarification" ||
		snap.text("configurable", "apiKey") != "[REDACTED]" || snap.number("metadata", "order") != 7 ||
		snap.text("sluice", "connectorName") != id {
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
	if less := c.as(key(t, access.NewKey{Scopes: reads})).do("GET", at, nil).want(200); less.member("interrupt",
		"interruptToken") != nil || less.text("interrupt", "kind") == "" {
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
	for _, wrong := range []string{`{}`, `{"resumeValue":null}`, `{"resumeValue":"x"}`, `{"resumeValue":{}}`,
		`{"resumeValue":{"answers":{}}}`,
		`{"resumeValue":{"answers":"SECRET"}}`, `{"resumeValue":{"answers":{"q1":77331}}}`,
		`{"resumeValue":{"answers":[{"id":"q1"}]}}`,
		`{"resumeValue":{"answers":[{"id":"q1","answer":"a"},{"id":"q1","answer":"b"}]}}`,
		`{"resumeValue":{"answers":{"q1":"a"}},"by":"me"}`} {
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
	answered := c.do("POST", "/v1/interrupts/"+token, object{"resumeValue": object{"answers": object{"q1": "blue"}}},
		header("Authorization", "")).want(200)
	if answered.text("runId") != run || answered.text("nodeId") != node {
		t.Errorf("%s", answered.body)
	}
	c.do("POST", "/v1/interrupts/"+token, object{"resumeValue": object{"answers": object{"q1": "red"}}}).want(409,
		"interrupt_already_resolved")
	c.do("POST", at+"/interrupts/"+node, object{"resumeValue": object{"answers": object{"q1": "red"}}}).want(409,
		"interrupt_already_resolved")
	c.do("GET", "/v1/interrupts/"+token, nil).want(409, "interrupt_already_resolved")

	// Each stream ends by itself behind the terminal event.
	if got := events(updates.rest()); !strings.HasSuffix(got, "node.completed run.completed") ||
		strings.Contains(got, "run.interaction") {
		t.Errorf("updates: %s", got)
	}
	frames := values.rest()
	if n := len(frames); n == 0 || member(frames[n-1].data, "status") != "completed" ||
		member(frames[0].data, "status") == "completed" {
		t.Errorf("values: %v", frames)
	}
	if got := messages.rest(); len(got) != 0 {
		t.Errorf("messages: %v", got)
	}
	whole := debug.rest()

	// The log by other ways is the same.
	page := c.do("GET", at+"/events/poll", nil).want(200).checkEvents()
	if page.member("isComplete") != true || page.text("terminalStatus") != "completed" ||
		len(page.list("events")) != len(whole) || page.types() != events(whole) {
		t.Errorf("poll: %s", page.body)
	}
	if listed := c.do("GET", at+"/events", nil,
		header("Accept", "application/json")).want(200).checkEvents(); string(listed.body) != string(page.body) {
		t.Errorf("listed: %s", listed.body)
	}
	last := whole[len(whole)-1].id
	if a := c.do("GET", fmt.Sprintf("%s/events/poll?lastSequence=%d", at, last),
		nil).want(200); len(a.list("events")) != 0 || a.member("isComplete") != true {
		t.Errorf("%s", a.body)
	}
	if a := c.do("GET", at+"/events?types=interrupt.*&limit=1", nil,
		header("Accept", "application/json")).want(200); a.types() != "interrupt.resolved" {
		t.Errorf("%s", a.types())
	}
	if a := c.do("GET", at+"/events/poll?vocabulary=openwop", nil).want(200); strings.Contains(a.types(),
		"run.interaction") || !strings.Contains(a.types(), "clarification.resolved") {
		t.Errorf("%s", a.types())
	}
	// Going on behind an id.
	for from := int64(0); from <= last; from += 3 {
		rest := c.follow(at+"/events?streamMode=debug", header("Last-Event-ID", fmt.Sprint(from))).rest()
		if int64(len(rest)) != last-from || len(rest) > 0 && rest[0].id != from+1 {
			t.Errorf("behind %d: %s", from, events(rest))
		}
	}
	if rest := c.follow(at + "/events?streamMode=values&lastEventId=" + fmt.Sprint(last)).rest(); len(rest) != 1 ||
		rest[0].id != last {
		t.Errorf("the baseline: %v", rest)
	}
	if rest := c.follow(at+"/events?streamMode=debug&lastEventId=0",
		header("Last-Event-ID", fmt.Sprint(last+100))).rest(); len(rest) != 0 {
		t.Errorf("beyond the end: %v", rest)
	}
	if rest := c.follow(at+"/events", header("Last-Event-ID", "soon")).rest(); len(rest) == 0 ||
		rest[0].event != "run.started" {
		t.Errorf("an id that is none: %v", rest)
	}
	if rest := c.follow(at + "/events?streamMode=updates,debug&bufferMs=5000").rest(); len(rest) == 0 ||
		rest[0].event != "batch" {
		t.Errorf("batches: %v", rest)
	}
	for q, code := range map[string]string{"streamMode=": "unsupported_stream_mode",
		"streamMode=updates,none": "unsupported_stream_mode",
		"streamMode=values,debug": "unsupported_stream_mode", "bufferMs=5001": "validation_error",
		"bufferMs=-1": "validation_error", "vocabulary=klingon": "validation_error",
		"limit=0": "validation_error", "types=x": ""} {
		if code == "" {
			continue
		}
		a := c.do("GET", at+"/events?"+q, nil).want(400, code)
		if code == "unsupported_stream_mode" &&
			fmt.Sprint(a.member("details", "supported")) != "[updates values messages debug]" {
			t.Errorf("%s: %s", q, a.body)
		}
	}
	c.do("GET", at+"/events", nil, header("Accept", "text/html")).want(406, "not_acceptable")
	for _, q := range []string{"timeout=0", "timeout=61", "lastSequence=-1", "lastSequence=x"} {
		c.do("GET", at+"/events/poll?"+q, nil).want(400, "validation_error")
	}

	b := c.do("GET", at+"/debug-bundle", nil).want(200).checkEvents()
	if b.types() != events(whole) || b.number("metrics", "eventCount") != float64(len(whole)) ||
		b.text("bundleVersion") != "1" ||
		b.member("run", "configurable") != nil || b.member("run", "metadata") != nil ||
		b.header.Get("Cache-Control") != "no-store" || strings.Contains(string(b.body), "hunter2") {
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
