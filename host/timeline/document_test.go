package timeline_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/timeline"
)

func payloadOf(t *testing.T, e ev) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(timeline.Document(new(script).commit(e).events[0]).Payload, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDocumentHasExactlyItsMembers(t *testing.T) {
	s := started()
	for i, want := range map[int]string{
		0: "eventId payload runId schemaVersion sequence timestamp type",
		2: "causationId eventId nodeId payload runId schemaVersion sequence timestamp type",
	} {
		raw, err := json.Marshal(timeline.Document(s.events[i]))
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(m)), " "); got != want {
			t.Errorf("event %d has %s, want %s", i, got, want)
		}
		if m["timestamp"] != "2026-03-02T08:00:00.000Z" || m["sequence"] != float64(i) {
			t.Errorf("event %d: %s", i, raw)
		}
	}
}

func TestPayloadOfTheRunProtocol(t *testing.T) {
	got := payloadOf(t, ev{typ: "run.batch_ingested", status: "succeeded", stream: "messages", interaction: "login-1",
		data: `{"batch_size":3}`})
	want := map[string]any{"batch_size": 3.0, "connector_id": "https://connectors.example/mailbox",
		"connection_id": "mailbox",
		"status":        "succeeded", "interaction_id": "login-1", "stream": "messages"}
	if !maps.Equal(got, want) {
		t.Errorf("payload %v, want %v", got, want)
	}
	got = payloadOf(t, ev{typ: "run.detail_gap_recorded", status: "succeeded", data: `{"status":"pending","stream":null}`})
	if got["status"] != "pending" {
		t.Errorf("status of the gap became %v", got["status"])
	}
	if v, there := got["stream"]; !there || v != nil {
		t.Errorf("stream of an event without one is %v", v)
	}
}

func TestPayloadOfOpenwopIsItsOwn(t *testing.T) {
	got := payloadOf(t, ev{typ: "node.started", status: "started",
		data: `{"nodeId":"collect","source":{"kind":"connector"}}`})
	if !maps.Equal(got, map[string]any{"nodeId": "collect"}) {
		t.Errorf("payload %v", got)
	}
	got = payloadOf(t, ev{typ: "interrupt.requested",
		data: `{"kind":"custom","key":"k","data":{},"nodeId":"collect","source":{},"timeoutMs":5}`})
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, []string{"data", "key", "kind", "timeoutMs"}) {
		t.Errorf("closed payload has %v", keys)
	}
}

func TestDocumentIsOneSafeLine(t *testing.T) {
	e := new(script).commit(ev{typ: "run.progress_reported",
		data: "{\n \"message\": \"</script>&\u2028\u2029\"\n}"}).events[0]
	raw, err := json.Marshal(timeline.Document(e))
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(raw), "<>&\n\r\u2028\u2029") {
		t.Errorf("document is %s", raw)
	}
	for _, bad := range []string{"", "null", "[1]", "{", "\"x\""} {
		e.Data = json.RawMessage(bad)
		if p := timeline.Document(e).Payload; !json.Valid(p) || p[0] != '{' {
			t.Errorf("data %q gives payload %q", bad, p)
		}
	}
}

func TestDocumentTakesDeepData(t *testing.T) { // a cursor as deep as a guest may send it
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	if got := payloadOf(t, ev{typ: "run.state_staged", data: `{"cursor":` + deep + `}`}); got["cursor"] == nil {
		t.Errorf("payload %v", got)
	}
}

func TestChunk(t *testing.T) {
	e := new(script).commit(ev{typ: "output.chunk", node: "collect",
		data: `{"nodeId":"collect","chunk":"hi","isLast":true,"meta":{"model":"m"},"source":{}}`}).events[0]
	raw, err := json.Marshal(timeline.ChunkOf(e))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"nodeId":"collect","runId":"run_01K9W3C7RZ5D1N8V5X9M2QH4TB","chunk":"hi","isLast":true,"meta":{"model":"m"}}`; string(raw) != want {
		t.Errorf("chunk %s, want %s", raw, want)
	}
}
