package timeline_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// A script builds a log as host/run writes it: one commit per call of commit,
// a second apart.
type script struct {
	events []store.Event
}

var began = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

type ev struct {
	typ, status, data string
	node, interaction string
	stream            string
}

func (s *script) commit(evs ...ev) *script {
	first := len(s.events)
	for i, e := range evs {
		n := len(s.events)
		out := store.Event{
			ID: store.EventID(fmt.Sprintf("evt_%016x", n)), Type: e.typ, Sequence: uint64(n), Status: e.status,
			OccurredAt: began.Add(time.Duration(first) * time.Second), RecordedAt: began.Add(time.Duration(first) * time.Second),
			RunID: "run_01K9W3C7RZ5D1N8V5X9M2QH4TB", TraceID: "trc_91d0a2be44c7f310",
			ConnectorID: "https://connectors.example/mailbox", ConnectionID: "mailbox", ActorType: "runtime",
			Stream: store.Stream(e.stream), InteractionID: e.interaction, NodeID: e.node, Data: json.RawMessage(e.data),
		}
		if e.data == "" {
			out.Data = json.RawMessage(`{}`)
		}
		if i > 0 {
			out.CausationID = s.events[first].ID
		}
		s.events = append(s.events, out)
	}
	return s
}

func started() *script {
	return new(script).commit(
		ev{typ: "run.started", status: "started",
			data: `{"workflowId":"mailbox","persist_state":true,"scope_streams":["folders","messages"],"source":{"kind":"connector","id":"x"}}`},
		ev{typ: "lease.acquired", data: `{"leaseId":"l","host":"cloud"}`},
		ev{typ: "node.started", node: "collect", data: `{"nodeId":"collect","typeId":"mailbox","attempt":0}`},
	)
}

// ask is what a question records for a kind of interaction.
func (s *script) ask(id, kind, openwop, obligation string) *script {
	n := len(s.events)
	requested := "clarification.requested"
	if openwop == "approval" {
		requested = "approval.requested"
	}
	return s.commit(
		ev{typ: "interrupt.requested", node: "collect", interaction: id, data: fmt.Sprintf(
			`{"kind":%q,"key":"k:%s","data":{"n":%d},"timeoutMs":300000,"nodeId":"collect","source":{"kind":"connector","id":"x"}}`, openwop, id, n)},
		ev{typ: requested, node: "collect", interaction: id, data: `{"nodeId":"collect","interruptId":"int_` + id + `"}`},
		ev{typ: "run.interaction_required", interaction: id, data: `{"kind":"` + kind + `","message":"m"}`},
		ev{typ: "run.assistance_requested", interaction: id, data: `{"assistance_request_id":"` + id + `","kind":"` + kind +
			`","message":"m",` +
			`"progress_posture":"blocked","owner_action":"provide_value","response_obligation":"` + obligation +
			`","sensitivity":"secret",` +
			`"input_schema":{"type":"object","required":["code"],"properties":{"code":{"type":"string","title":"Code","secret":true,"delivery":"sealed"}}}}`},
		ev{typ: "node.suspended", node: "collect", interaction: id, data: `{"nodeId":"collect","interruptId":"int_` + id +
			`","kind":"` + openwop + `","key":"k:` + id + `"}`},
	)
}

// closeBy closes a question; resumed says whether node.resumed is in it.
func (s *script) closeBy(id, status, by string, resumed bool, before ...ev) *script {
	end := map[string]string{"success": "resolved", "cancelled": "cancelled", "timeout": "timed_out"}[status]
	evs := append(before,
		ev{typ: "interrupt.resolved", node: "collect", interaction: id, data: `{"nodeId":"collect","interruptId":"int_` + id +
			`","kind":"clarification","status":"` + status + `","resolvedBy":"` + by + `"}`},
		ev{typ: "run.interaction_completed", interaction: id, data: `{"status":"` + status + `"}`},
		ev{typ: "run.assistance_" + end, interaction: id, data: `{"assistance_request_id":"` + id +
			`","status":"` + end + `"}`},
	)
	if resumed {
		evs = append(evs, ev{typ: "node.resumed", node: "collect", interaction: id,
			data: `{"nodeId":"collect","interruptId":"int_` + id + `"}`})
	}
	return s.commit(evs...)
}

func (s *script) fold() *timeline.Fold {
	f := new(timeline.Fold)
	f.Add(s.events...)
	return f
}

func row() store.Run {
	return store.Run{
		ID: "run_01K9W3C7RZ5D1N8V5X9M2QH4TB", TraceID: "trc_91d0a2be44c7f310",
		ConnectorID: "https://connectors.example/mailbox", ConnectionID: "mailbox", Digest: "sha256:00", Status: "active",
		Phase: "running", StartedAt: began, TriggerKind: "manual", Attempt: 1,
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
