package timeline_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

var (
	paused  = ev{typ: "run.paused", data: `{"drainPolicy":"immediate","requestedBy":"owner"}`}
	resumed = ev{typ: "run.resumed", data: `{"cause":"owner"}`}
	failure = `{"reason":"run_timed_out","error":{"code":"run_timed_out","message":"too long","details":{"deadline":"wall"},"retryable":true},"records_emitted":7,"records_attempted":6,"records_accepted":5,"records_flushed":5,"durationMs":99,"checkpoint_mode":"checkpointed_streaming","checkpoint_commit_status":"not_committed","known_gaps":[{"kind":"run_failed"}]}`
)

func TestStatus(t *testing.T) {
	cases := []struct {
		name string
		log  *script
		want timeline.Status
	}{
		{"accepted", new(script), timeline.Pending},
		{"launch failed", new(script).commit(ev{typ: "run.failed", status: "failed", data: failure}), timeline.Failed},
		{"cancelled while pending",
			new(script).commit(ev{typ: "run.cancel_requested"}, ev{typ: "run.cancelled", status: "cancelled"}),
			timeline.Cancelled},
		{"started", started(), timeline.Running},
		{"approval", started().ask("a", "manual_action", "approval", "response_required"), timeline.WaitingApproval},
		{"clarification", started().ask("a", "otp", "clarification", "response_required"), timeline.WaitingInput},
		{"custom", started().ask("a", "x", "custom", "response_required"), timeline.WaitingInput},
		{"external", started().ask("a", "x", "external-event", "response_required"), timeline.WaitingExternal},
		{"answered", started().ask("a", "otp", "clarification", "response_required").closeBy("a", "success", "owner", true),
			timeline.Running},
		{"paused", started().commit(paused), timeline.Paused},
		{"resumed", started().commit(paused).commit(resumed), timeline.Running},
		{"paused while waiting", started().ask("a", "otp", "clarification", "response_required").commit(paused),
			timeline.Paused},
		{"resumed to waiting", started().ask("a", "otp", "clarification", "response_required").commit(paused).commit(resumed),
			timeline.WaitingInput},
		{"answered while paused",
			started().ask("a", "otp", "clarification", "response_required").commit(paused).closeBy("a", "success", "owner",
				false), timeline.Paused},
		{"resumed after the answer",
			started().ask("a", "otp", "clarification", "response_required").commit(paused).closeBy("a", "success", "owner",
				false).commit(resumed), timeline.Running},
		{"completed", started().commit(ev{typ: "run.completed", status: "succeeded"}), timeline.Completed},
		{"connector reported cancelled",
			started().commit(ev{typ: "run.failed", status: "cancelled", data: `{"reason":"connector_reported_cancelled"}`}),
			timeline.Failed},
		{"cancelled while paused", started().commit(paused).commit(ev{typ: "run.cancelled", status: "cancelled"}),
			timeline.Cancelled},
	}
	for _, c := range cases {
		f := c.log.fold()
		if got := f.Status(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if f.Ended() != c.want.Terminal() {
			t.Errorf("%s: ended %v", c.name, f.Ended())
		}
		s := f.Snapshot(row(), timeline.About{})
		if (s.CurrentNodeID != "") != (s.Interrupt != nil) {
			t.Errorf("%s: node %q with interrupt %v", c.name, s.CurrentNodeID, s.Interrupt)
		}
		if (s.Sluice.Phase == nil) != c.want.Terminal() {
			t.Errorf("%s: phase %v", c.name, s.Sluice.Phase)
		}
	}
}

func TestTerminalNeverChanges(t *testing.T) {
	s := started().commit(ev{typ: "run.completed", status: "succeeded"}).commit(ev{typ: "run.failed", status: "failed"})
	if f := s.fold(); f.Status() != timeline.Completed || f.Next() != 4 {
		t.Errorf("status %s, next %d", f.Status(), f.Next())
	}
}

// everything is a log that uses all of a fold.
func everything() *script {
	return started().
		commit(ev{typ: "run.progress_reported", stream: "messages", data: `{"message":"one","count":1,"total":9}`}).
		commit(ev{typ: "run.progress_reported", data: `{"message":"all"}`}).
		commit(ev{typ: "run.batch_ingested", stream: "messages",
			data: `{"records_attempted":5,"records_accepted":4,"records_flushed":4,"records_permanently_rejected":1}`}).
		commit(ev{typ: "run.batch_ingested", stream: "messages",
			data: `{"records_attempted":1,"records_accepted":1,"records_flushed":1}`}).
		commit(ev{typ: "run.state_staged", stream: "messages", data: `{"cursor":{"a":1}}`}).
		commit(ev{typ: "run.assistance_requested",
			data: `{"assistance_request_id":"r1","message":"wait","progress_posture":"running","owner_action":"act_elsewhere","response_obligation":"none","sensitivity":"none","timeout_seconds":60,"attachments":[{"kind":"url","label":"Site","url":"https://x.example/?t=1"}]}`}).
		commit(ev{typ: "run.assistance_updated",
			data: `{"assistance_request_id":"r1","attachments":[{"kind":"qr","label":"Code","payload":"secret"}]}`}).
		ask("login-1", "otp", "clarification", "response_required").
		commit(paused).commit(resumed).
		closeBy("login-1", "success", "owner", true).
		ask("login-1#2", "otp", "clarification", "response_required")
}

func TestSnapshot(t *testing.T) {
	r := row()
	r.Request = store.Request{Tags: []string{"a"}, Metadata: json.RawMessage(`{"m":1}`),
		Configurable: json.RawMessage(
			`{"api_key":"k","deep":[{"myToken":{"x":1},"credentialRef":"r","n":12345678901234567890}]}`)}
	got := everything().fold().Snapshot(r,
		timeline.About{ConnectorName: "mailbox", ConnectorVersion: "1.2.3", EngineVersion: "sluice 1",
			Live: &timeline.Live{Phase: "waiting", PauseRequested: true}})
	want := `{
 "runId": "run_01K9W3C7RZ5D1N8V5X9M2QH4TB",
 "workflowId": "mailbox",
 "status": "waiting-input",
 "currentNodeId": "collect",
 "startedAt": "2026-03-02T08:00:00.000Z",
 "engineVersion": "sluice 1",
 "eventLogSchemaVersion": 1,
 "tags": [
  "a"
 ],
 "metadata": {
  "m": 1
 },
 "configurable": {
  "api_key": "[REDACTED]",
  "deep": [
   {
    "credentialRef": "[REDACTED]",
    "myToken": "[REDACTED]",
    "n": 12345678901234567890
   }
  ]
 },
 "nodeStates": {
  "collect": {
   "status": "suspended",
   "attempt": 0,
   "startedAt": "2026-03-02T08:00:00.000Z",
   "interruptId": "int_login-1#2",
   "progress": {
    "": {
     "message": "all",
     "at": "2026-03-02T08:00:04.000Z"
    },
    "messages": {
     "message": "one",
     "count": 1,
     "total": 9,
     "at": "2026-03-02T08:00:03.000Z"
    }
   },
   "streams": {
    "folders": {
     "records": 0,
     "batches": 0,
     "checkpoint": "none"
    },
    "messages": {
     "records": 5,
     "batches": 2,
     "checkpoint": "staged"
    }
   }
  }
 },
 "variables": {},
 "channels": {},
 "interrupt": {
  "interruptId": "int_login-1#2",
  "kind": "clarification",
  "nodeId": "collect",
  "expiresAt": "2026-03-02T08:05:21.000Z"
 },
 "metrics": {
  "recordsAttempted": 6,
  "recordsAccepted": 5,
  "recordsFlushed": 5,
  "recordsPermanentlyRejected": 1,
  "recordsUnresolvedRetryable": 0
 },
 "sluice": {
  "connectorId": "https://connectors.example/mailbox",
  "connectorName": "mailbox",
  "connectorVersion": "1.2.3",
  "moduleDigest": "sha256:00",
  "connectionId": "mailbox",
  "triggerKind": "manual",
  "attempt": 1,
  "traceId": "trc_91d0a2be44c7f310",
  "phase": "waiting",
  "lastSequence": 25,
  "retentionFloor": 0,
  "pauseRequested": true,
  "assistance": [
   {
    "assistanceId": "` + timeline.AssistanceID("run_01K9W3C7RZ5D1N8V5X9M2QH4TB", "r1") + `",
    "runId": "run_01K9W3C7RZ5D1N8V5X9M2QH4TB",
    "nodeId": "collect",
    "connectionId": "mailbox",
    "kind": "assistance",
    "progressPosture": "running",
    "ownerAction": "act_elsewhere",
    "responseObligation": "none",
    "sensitivity": "none",
    "message": "wait",
    "attachments": [
     {
      "kind": "qr",
      "label": "Code"
     }
    ],
    "status": "open",
    "createdAt": "2026-03-02T08:00:08.000Z",
    "expiresAt": "2026-03-02T08:01:09.000Z"
   },
   {
    "assistanceId": "` + timeline.AssistanceID("run_01K9W3C7RZ5D1N8V5X9M2QH4TB", "login-1#2") + `",
    "interactionId": "login-1#2",
    "interruptId": "int_login-1#2",
    "runId": "run_01K9W3C7RZ5D1N8V5X9M2QH4TB",
    "nodeId": "collect",
    "connectionId": "mailbox",
    "kind": "otp",
    "progressPosture": "blocked",
    "ownerAction": "provide_value",
    "responseObligation": "response_required",
    "sensitivity": "secret",
    "message": "m",
    "inputSchema": {
     "type": "object",
     "required": [
      "code"
     ],
     "properties": {
      "code": {
       "type": "string",
       "title": "Code",
       "secret": true,
       "delivery": "sealed"
      }
     }
    },
    "attachments": [],
    "status": "open",
    "createdAt": "2026-03-02T08:00:21.000Z"
   }
  ]
 }
}`
	if s := encode(t, got); s != want {
		t.Errorf("snapshot is\n%s\nwant\n%s", s, want)
	}
}

func TestFoldIsResumable(t *testing.T) { // any cut of the log gives the same
	all := everything().commit(ev{typ: "run.failed", status: "failed", data: failure}).events
	whole := new(timeline.Fold)
	whole.Add(all...)
	want := encode(t, whole.Snapshot(row(), timeline.About{}))
	for cut := range all {
		f := new(timeline.Fold)
		f.Add(all[:cut]...)
		f.Snapshot(row(), timeline.About{})
		f.Add(all[max(0, cut-2):]...) // what was read before changes nothing
		if got := encode(t, f.Snapshot(row(), timeline.About{})); got != want {
			t.Fatalf("cut at %d gives\n%s\nwant\n%s", cut, got, want)
		}
	}
}

func TestSnapshotSharesNothing(t *testing.T) {
	f := everything().fold()
	s := f.Snapshot(row(), timeline.About{})
	before := encode(t, s)
	f.Add(store.Event{Sequence: f.Next(), Type: "run.batch_ingested", Stream: "messages",
		Data: json.RawMessage(`{"records_flushed":50}`)},
		store.Event{Sequence: f.Next() + 1, Type: "run.completed", Data: json.RawMessage(`{}`)})
	if after := encode(t, s); after != before {
		t.Errorf("a snapshot changed to\n%s", after)
	}
}

func TestSnapshotOfARunThatIsOver(t *testing.T) {
	f := everything().commit(ev{typ: "run.failed", status: "cancelled", data: failure}).fold()
	s := f.Snapshot(row(), timeline.About{Live: &timeline.Live{Phase: "committing", CancelRequested: true}})
	if s.Error == nil || s.Error.Code != "run_timed_out" || s.Error.Message != "too long" ||
		string(s.Error.Details) != `{"deadline":"wall"}` {
		t.Errorf("error %+v", s.Error)
	}
	if s.Interrupt != nil || s.CurrentNodeID != "" || s.Sluice.Phase != nil || s.Sluice.CancelRequested ||
		len(s.Sluice.Assistance) != 0 {
		t.Errorf("something of the run goes on: %s", encode(t, s))
	}
	if s.Sluice.Result != "cancelled" || s.Sluice.TerminalReason != "run_timed_out" || *s.Metrics.RecordsEmitted != 7 ||
		*s.Metrics.DurationMs != 99 {
		t.Errorf("end is %s", encode(t, s))
	}
	if got, want := string(s.Sluice.Checkpoints), `"commit_status":"not_committed"`; !strings.Contains(got, want) ||
		s.Sluice.KnownGaps == nil {
		t.Errorf("checkpoints %s, gaps %s", got, s.Sluice.KnownGaps)
	}
	if n := s.NodeStates["collect"]; n.Status != timeline.NodeIsFailed || n.CompletedAt == "" {
		t.Errorf("node %+v", n)
	}
	if raw := encode(t, s.WithoutStates()); strings.Contains(raw, "nodeStates") || strings.Contains(raw, "variables") ||
		strings.Contains(raw, "channels") {
		t.Errorf("list form has states: %s", raw)
	}
}

func TestSnapshotWithoutALog(t *testing.T) {
	r := row()
	r.Pruned, r.Status, r.Phase = true, "cancelled", ""
	r.Result = json.RawMessage(
		`{"terminal_reason":"connector_reported_cancelled","records_attempted":3,"checkpoint_summary":{"mode":"m"},"failure":{"message":"said so","origin":"connector","subtype":"x"},"deadline":"wall","usage":{"wall_ms":12}}`)
	s := new(timeline.Fold).Snapshot(r, timeline.About{RetentionFloor: 44})
	if s.Status != timeline.Failed || s.Error == nil || s.Error.Code != "connector_reported_cancelled" ||
		s.Error.Message != "said so" {
		t.Errorf("snapshot %s", encode(t, s))
	}
	if got, want := string(s.Error.Details),
		`{"deadline":"wall","failure_origin":"connector","violation":{"subtype":"x"}}`; got != want {
		t.Errorf("details %s, want %s", got, want)
	}
	if s.Sluice.RetentionFloor != 44 || s.Sluice.LastSequence != nil || *s.Metrics.DurationMs != 12 ||
		s.Metrics.RecordsAttempted != 3 || s.Sluice.Result != "cancelled" {
		t.Errorf("snapshot %s", encode(t, s))
	}
}

func TestClosings(t *testing.T) {
	ask := func() *script { return started().ask("a", "otp", "clarification", "response_required") }
	failed := ev{typ: "run.failed", status: "failed", data: failure}
	lost := ev{typ: "run.browser_surface_lost", interaction: "a", data: `{"interaction_id":"a","kind":"otp"}`}
	cases := []struct {
		name string
		log  *script
		want timeline.Closing
		code string
	}{
		{"open", ask(), timeline.Open, ""},
		{"open while paused", ask().commit(paused), timeline.Open, ""},
		{"answered", ask().closeBy("a", "success", "key:k1", true), timeline.Answered, "interrupt_already_resolved"},
		{"cancelled by the owner", ask().closeBy("a", "cancelled", "owner", true), timeline.Answered,
			"interrupt_already_resolved"},
		{"answered, then the run ended", ask().closeBy("a", "success", "owner", true).commit(failed), timeline.Answered,
			"interrupt_already_resolved"},
		{"timed out", ask().closeBy("a", "timeout", "host", true), timeline.TimedOut, "no_pending_interaction"},
		{"surface lost", ask().closeBy("a", "cancelled", "host", true, lost), timeline.SurfaceLost, "no_pending_interaction"},
		{"host gave up", ask().closeBy("a", "cancelled", "host", true), timeline.ClosedByHost, "no_pending_interaction"},
		{"run cancelled", ask().commit(ev{typ: "run.cancel_requested"}).closeBy("a", "cancelled", "host",
			false).commit(ev{typ: "run.cancelled"}), timeline.ClosedByEnd, "interrupt_cancelled"},
		{"guest exited", ask().closeBy("a", "cancelled", "host", false).commit(failed), timeline.ClosedByEnd,
			"interrupt_cancelled"},
		{"violation", ask().commit(failed), timeline.ClosedByEnd, "interrupt_cancelled"},
	}
	for _, c := range cases {
		f := c.log.fold()
		q, ok := f.InterruptOfNode("collect")
		if !ok || q.Closed != c.want || q.Closed.Code() != c.code {
			t.Errorf("%s: %v %v %q, want %v %q", c.name, ok, q.Closed, q.Closed.Code(), c.want, c.code)
		}
		if byID, ok := f.InterruptByID("int_a"); !ok || byID.Closed != c.want || byID.InteractionID != "a" ||
			byID.InteractionKind != "otp" {
			t.Errorf("%s: by id %v %+v", c.name, ok, byID)
		}
	}
	if _, ok := started().fold().InterruptOfNode("collect"); ok {
		t.Error("an interrupt where none was")
	}
}

func TestInterruptPayload(t *testing.T) {
	f := started().ask("a", "otp", "clarification", "response_required").closeBy("a", "success", "owner", true).
		ask("b", "approval", "approval", "response_required").fold()
	q, _ := f.InterruptOfNode("collect")
	raw, err := json.Marshal(q.Payload)
	if want := `{"kind":"approval","key":"k:b","data":{"n":12},"timeoutMs":300000}`; err != nil || string(raw) != want {
		t.Errorf("payload %s, %v, want %s", raw, err, want)
	}
	if a, ok := f.InterruptByID("int_a"); !ok || a.Closed != timeline.Answered || a.Payload.Key != "k:a" {
		t.Errorf("the first question is %+v", a)
	}
}

func TestAssistanceID(t *testing.T) {
	a := timeline.AssistanceID("run_1", "login-1")
	if len(a) != 30 || strings.Trim(a[4:], "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != "" || a[:4] != "ast_" {
		t.Errorf("id %q", a)
	}
	if a != timeline.AssistanceID("run_1", "login-1") || a == timeline.AssistanceID("run_1", "login-1#2") ||
		a == timeline.AssistanceID("run_1l", "ogin-1") {
		t.Error("ids of different requests are equal, or of the same one different")
	}
}
