package app_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

func conformance(c *store.Connector) { c.Conformance = true }

// conformanceAsk is a connector like those of the conformance suite: it asks, and has a
// setting with bounds.
func conformanceAsk(t *testing.T) []byte {
	return askModule(t, "https://connectors.sluice.dev/ask", "conformance-ask", `"connector_key": "ask",`, ``,
		`"pause_ms": {"type": "integer",`, `"pause_ms": {"type": "integer", "minimum": 0, "maximum": 1000,`)
}

func connections(t *testing.T, h *app.Host) []store.Connection {
	t.Helper()
	all, err := h.Store.Connections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every run of a conformance connector has a connection of its own, with nothing approved,
// which goes when the run does; the run stays.
func TestConformance(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	installAs(t, h, conformanceAsk(t), conformance)
	var runs []store.Run
	for range 3 {
		runs = append(runs, startRun(t, s, host.StartRun{WorkflowID: "conformance-ask", Inputs: json.RawMessage(oneCode)}))
	}
	for _, c := range connections(t, h) {
		if !c.Temporary || c.Grant == nil || c.Grant.Scope != nil || c.Grant.Status != "active" ||
			len(c.Approved.Hosts)+len(c.Approved.Mounts) > 0 {
			t.Errorf("%+v", c)
		}
		if _, err := s.StartRun(host.As(t.Context(), owner), host.StartRun{WorkflowID: string(c.ID)}); err == nil {
			t.Error("started what is another run's")
		}
	}
	for i, r := range runs {
		q := parked(t, h, r.ID)
		status := "success"
		if i == 1 {
			status = "cancelled"
		}
		a := host.Answer{RunID: r.ID, InteractionID: q.ID, Status: status,
			Data: map[string]json.RawMessage{"code": json.RawMessage(`"1"`)}}
		if err := s.Answer(host.As(t.Context(), owner), a); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range runs {
		if got := over(t, h, r.ID); got.Status != "succeeded" {
			t.Errorf("%s %s", got.Status, got.Result)
		}
	}
	eventually(t, "no connection is left", func() bool { return len(connections(t, h)) == 0 })
	if events := timeline(t, h, runs[0].ID, "run.completed"); len(events) != 1 {
		t.Error("the timeline went with the connection")
	}
}

// Inputs that are wrong are refused, and leave nothing behind; others are ignored.
func TestConformanceInputs(t *testing.T) {
	h := serviceHost(t)
	s := openService(t, h, app.ServiceOptions{})
	installAs(t, h, conformanceAsk(t), conformance)
	for inputs, field := range map[string]string{
		`[]`:                  "inputs",
		`{"ask": 1}`:          "inputs.ask",
		`{"pause_ms": 1.5}`:   "inputs.pause_ms",
		`{"pause_ms": -1}`:    "inputs.pause_ms",
		`{"pause_ms": 1001}`:  "inputs.pause_ms",
		`{"ask":[],"ask":[]}`: "inputs",
	} {
		_, err := s.StartRun(host.As(t.Context(), owner),
			host.StartRun{WorkflowID: "conformance-ask", Inputs: json.RawMessage(inputs)})
		if code, details := refusalCode(err); code != "invalid_request" || details["field"] != field {
			t.Errorf("%s: %v %v", inputs, err, details)
		}
	}
	if left := connections(t, h); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	rec := startRun(t, s, host.StartRun{WorkflowID: "conformance-ask",
		Inputs: json.RawMessage(`{"ask": [], "nonce": 7, "pause_ms": 1000}`)})
	if got := over(t, h, rec.ID); got.Status != "succeeded" {
		t.Errorf("%s %s", got.Status, got.Result)
	}
}

// A connection that a crash left behind is removed at the next start, and nobody else's.
func TestLeftovers(t *testing.T) {
	h := serviceHost(t)
	now := time.Now()
	for id, temporary := range map[store.ConnectionID]bool{"conformance-ask-1": true, "conformance-ask-mine": false} {
		c := store.Connection{ID: id, ConnectorID: "conformance-ask", Enabled: true, Temporary: temporary,
			CreatedAt: now, UpdatedAt: now}
		if err := h.Store.PutConnection(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	openService(t, h, app.ServiceOptions{})
	if _, err := h.Store.Connection(t.Context(), "conformance-ask-1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("left over: %v", err)
	}
	if _, err := h.Store.Connection(t.Context(), "conformance-ask-mine"); err != nil {
		t.Error(err)
	}
}
