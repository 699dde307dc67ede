package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sluicehost/sluice/host/telemetry"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// kept remembers spans also after it was shut down.
type kept struct{ tracetest.SpanStubs }

func (k *kept) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	k.SpanStubs = append(k.SpanStubs, tracetest.SpanStubsFromReadOnlySpans(spans)...)
	return nil
}

func (*kept) Shutdown(context.Context) error { return nil }

func opened(t *testing.T) (*telemetry.Spans, *kept) {
	t.Helper()
	k := &kept{}
	s, err := telemetry.OpenSpans(t.Context(), telemetry.TraceOptions{Version: "1.2.3", HostID: "host", Exporter: k})
	if err != nil {
		t.Fatal(err)
	}
	return s, k
}

// Spans nest across calls, have the attributes of the list and no others,
// and say of an error what kind it is. All are handed over at the end.
func TestSpans(t *testing.T) {
	s, k := opened(t)
	ctx, endRun := s.Start(t.Context(), "openwop.run", map[string]any{
		"openwop.link": parent, "openwop.run_id": "run_1", "workflow_id": strings.Repeat("é", 300),
		"url": "https://user:pw@host/", "answer": "1234", "node_attempt": 1, "event_seq": uint64(1 << 63),
		"cap_limit": struct{ Secret string }{"x"},
	})
	_, endCall := s.Start(ctx, "openwop.activity.network", nil)
	endCall(errors.New("dial https://user:pw@host/: refused"))
	_, endLate := s.Start(ctx, "openwop.activity.network", nil)
	endLate(context.DeadlineExceeded)
	endRun(nil)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(k.SpanStubs) != 3 {
		t.Fatalf("%d spans", len(k.SpanStubs))
	}
	call, late, run := k.SpanStubs[0], k.SpanStubs[1], k.SpanStubs[2]
	if call.Parent.SpanID() != run.SpanContext.SpanID() || call.SpanContext.TraceID() != run.SpanContext.TraceID() {
		t.Error("the call is not below the run")
	}
	if run.Parent.IsValid() || run.SpanContext.TraceID().String() == parent[3:35] {
		t.Error("a linked trace was continued")
	}
	if len(run.Links) != 1 || run.Links[0].SpanContext.TraceID().String() != parent[3:35] || len(call.Links) != 0 {
		t.Errorf("links %v and %v", run.Links, call.Links)
	}
	if call.Status.Code != codes.Error || call.Status.Description != "error" || len(call.Events) > 0 ||
		late.Status.Description != "timeout" {
		t.Errorf("status %v, %v, events %v", call.Status, late.Status, call.Events)
	}
	got := map[string]string{}
	for _, a := range run.Attributes {
		got[string(a.Key)] = a.Value.String()
	}
	want := map[string]string{
		"openwop.run_id": "run_1", "openwop.workflow_id": strings.Repeat("é", 128),
		"openwop.node_attempt": "1", "openwop.event_seq": "9223372036854775807",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("attributes (-want +got):\n%s", d)
	}
}

// W3C trace context: what is no traceparent is as if it were not there.
func TestLink(t *testing.T) {
	s, k := opened(t)
	cases := map[string]bool{
		parent:                      true,
		"cc" + parent[2:] + "-more": true, // a later version
		"":                          false,
		parent[:54]:                 false,
		strings.ToUpper(parent):     false,
		"ff" + parent[2:]:           false,
		parent + "-more":            false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
		parent + strings.Repeat("-x", 300):                        false,
	}
	var texts []string
	for text := range cases {
		_, end := s.Start(t.Context(), "openwop.run", map[string]any{"openwop.link": text})
		end(nil)
		texts = append(texts, text)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if links := len(k.SpanStubs[i].Links); (links == 1) != cases[text] {
			t.Errorf("%q: %d links", text, links)
		}
	}
}

// Nothing leaves the host unless the owner named where to.
func TestNoEndpoint(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
	s, err := telemetry.OpenSpans(t.Context(), telemetry.TraceOptions{})
	if err != nil || s.Recording() {
		t.Fatalf("recording %v, %v", s.Recording(), err)
	}
	_, end := s.Start(t.Context(), "openwop.run", map[string]any{"openwop.link": parent})
	end(nil)
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// OpenTelemetry's variables say more than the host does; an export that
// fails is reported when the host ends, or in its log before.
func TestEnvironment(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", server.URL)
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	var log bytes.Buffer
	s, err := telemetry.OpenSpans(t.Context(), telemetry.TraceOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	_, end := s.Start(t.Context(), "openwop.run", nil)
	end(nil)
	if err := s.Close(t.Context()); err == nil && !strings.Contains(log.String(), "spans not exported") {
		t.Error("a failed export is nowhere to be seen")
	}

	s, k := opened(t)
	_, end = s.Start(t.Context(), "openwop.run", nil)
	end(nil)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := k.SpanStubs[0].Resource.String()
	for _, want := range []string{"service.name=mine", "service.version=1.2.3", "service.instance.id=host"} {
		if !strings.Contains(got, want) {
			t.Errorf("resource %s, want %s", got, want)
		}
	}
}

// OTLP over HTTP goes to where the environment says, at the latest when the host
// ends.
func TestEndpoint(t *testing.T) {
	var got atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/traces" && r.Method == http.MethodPost {
			got.Add(1)
		}
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	s, err := telemetry.OpenSpans(t.Context(), telemetry.TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, end := s.Start(t.Context(), "openwop.run", nil)
	end(nil)
	if err := s.Close(t.Context()); err != nil || got.Load() != 1 {
		t.Errorf("%d exports, %v", got.Load(), err)
	}
}
