package api_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A decision by every way that there is; both ways of deciding complete the run.
func TestApproval(t *testing.T) {
	c := served(t)
	for name, answer := range map[string]func(run, interaction, token string) *answer{
		"interrupt, accept": func(run, _, _ string) *answer {
			return c.do("POST", "/v1/runs/"+run+"/interrupts/gate",
				`{"resumeValue":{"action":"accept","comment":"fine"}}`).want(200)
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
			return c.do("POST", "/v1/runs/"+run+"/interaction",
				object{"interactionId": interaction, "status": "success", "data": object{"action": "accept"}}).want(202)
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
			if len(list.list("data")) != 1 || list.text("data", 0, "progressPosture") != "blocked" ||
				list.text("data", 0, "ownerAction") != "provide_value" ||
				list.text("data", 0, "responseObligation") != "response_required" {
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
			for wrong, code := range map[string]string{`{}`: "invalid_request",
				`{"interactionId":" ","status":"success"}`:           "invalid_request",
				`{"interactionId":"x","status":"timeout"}`:           "invalid_status",
				`{"interactionId":"x","status":"success","data":[]}`: "invalid_request"} {
				if a := own.do("POST", at+"/interaction", wrong).want(400, "validation_error"); a.text("details", "code") != code {
					t.Errorf("%s: %s", wrong, a.body)
				}
			}
			a := own.do("POST", at+"/interaction",
				object{"interactionId": "another", "status": "success", "data": object{"action": "accept"}}).want(409,
				"interaction_id_mismatch")
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
	if a := c.do("POST", "/v1/runs/"+run+"/interaction", body,
		once("answer"+run)).want(202); a.header.Get("openwop-Idempotent-Replay") != "true" {
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
	// an open body
	if a := c.do("POST", at+"/cancel", `{"reason":"enough","unknown":1}`).want(200); !strings.HasPrefix(a.text("status"),
		"cancel") {
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
	c.do("POST", at+"/interaction",
		object{"interactionId": interaction, "status": "success", "data": object{"action": "accept"}}).want(409,
		"no_pending_interaction")
	p := c.do("GET", at+"/events/poll", nil).want(200).checkEvents()
	if n := strings.Count(p.types(), "run.cancel_requested"); n != 1 ||
		!strings.HasSuffix(p.types(), "node.cancelled run.cancelled") {
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
	for _, bad := range []string{"x", "x.y", token + "x", "A" + token[1:], token[:len(token)-1],
		strings.ReplaceAll(token, ".", "%2E") + ".", strings.Repeat("a", 5000)} {
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

// A question that is answered while the run is paused.
func TestAnswerWhilePaused(t *testing.T) {
	c := served(t)
	run := c.start(workflow("conformance-approval"))
	c.suspended(run)
	at := "/v1/runs/" + run
	c.do("POST", at+":pause", nil).want(202)
	c.status(run, "paused")
	if a := c.do("POST", at+"/interrupts/gate",
		`{"resumeValue":{"action":"accept"}}`).want(200); a.text("status") != "paused" {
		t.Errorf("%s", a.body)
	}
	c.do("POST", at+":resume", nil).want(202)
	if s := c.ended(run); s.text("status") != "completed" {
		t.Errorf("%s", s.body)
	}
	if p := c.do("GET", at+"/events/poll", nil).want(200).checkEvents(); !strings.Contains(p.types(),
		"run.resumed node.resumed") {
		t.Errorf("%s", p.types())
	}
}
