package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// TraceOptions configure Spans.
type TraceOptions struct {
	Version string
	HostID  string
	// Exporter receives the spans. If it is nil, they are exported by OTLP over HTTP if the
	// environment names an endpoint.
	Exporter sdk.SpanExporter
	// Log receives failed exports, which OpenTelemetry reports for the whole process; nil leaves
	// that unchanged.
	Log *slog.Logger
}

// endpoints are the variables that turn tracing on. Without one of them, OpenTelemetry's other
// variables are not read.
var endpoints = []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}

// Spans records the spans of one host. It is safe for concurrent use. The zero Spans records none.
type Spans struct {
	tracer   trace.Tracer
	provider *sdk.TracerProvider // nil: nothing is recorded
}

// OpenSpans begins to record spans if there is an exporter. It does not check whether the server is
// reachable: spans that it does not accept are dropped, and nothing waits for it.
func OpenSpans(ctx context.Context, o TraceOptions) (*Spans, error) {
	exporter := o.Exporter
	if exporter == nil && wanted() {
		var err error
		if exporter, err = otlptracehttp.New(ctx); err != nil {
			return nil, fmt.Errorf("open trace exporter: %w", err)
		}
	}
	if exporter == nil {
		return &Spans{}, nil
	}
	if o.Log != nil {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("spans not exported", "error", err) }))
	}
	about, err := resource.Merge(resource.NewSchemaless(
		attribute.String("service.name", "sluice"),
		attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", o.HostID),
	), resource.Environment())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	return &Spans{tracer: p.Tracer("github.com/sluicehost/sluice"), provider: p}, nil
}

func wanted() bool {
	for _, name := range endpoints {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// Recording reports whether spans are recorded.
func (s *Spans) Recording() bool { return s.provider != nil }

// Close exports what is recorded, until ctx ends.
func (s *Spans) Close(ctx context.Context) error {
	if s.provider == nil {
		return nil
	}
	return errors.Join(s.provider.ForceFlush(ctx), s.provider.Shutdown(ctx))
}

// Start begins a span below that of ctx. The name is one of openwop's; what follows
// openwop.activity. or openwop.node. is chosen or checked by the host. The attribute openwop.link
// is the W3C traceparent of a linked trace, which may end long before the span and so is not its
// parent. Attributes not in spanAttributes are dropped. The returned function ends the span and
// records the kind of err, never its text.
func (s *Spans) Start(ctx context.Context, name string, attrs map[string]any) (context.Context, func(err error)) {
	tracer := s.tracer
	if tracer == nil {
		tracer = noop.Tracer{}
	}
	ctx, span := tracer.Start(ctx, bounded(name), trace.WithAttributes(attributes(attrs)...),
		trace.WithLinks(linked(attrs[linkAttribute])...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, kindOf(err))
		}
		span.End()
	}
}

// kindOf returns the kind of an error without its text, which may contain what a guest or a server
// said.
func kindOf(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "error"
}

// parentLength is the length of a traceparent of version 00.
const parentLength = 55

// linkAttribute holds the traceparent of a linked trace. It is not an attribute of the span.
const linkAttribute = prefix + "link"

// linked returns a link to the trace of a W3C traceparent, if it is valid.
func linked(traceparent any) []trace.Link {
	text, _ := traceparent.(string)
	// later versions may be longer, with the same beginning
	if len(text) < parentLength || len(text) > maxText || strings.ToLower(text) != text {
		return nil
	}
	headers := propagation.MapCarrier{"traceparent": strings.Clone(text)}
	c := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), headers))
	if !c.IsValid() {
		return nil
	}
	return []trace.Link{{SpanContext: c}}
}

// maxText bounds names and attribute values, in bytes.
const maxText = 256

// spanAttributes lists the allowed attributes, without their prefix.
var spanAttributes = map[string]bool{
	"run_id": true, "workflow_id": true, "node_id": true, "node_type": true, "node_attempt": true,
	"event_type": true, "event_seq": true, "interrupt_kind": true, "interrupt_id": true,
	"cap_kind": true, "cap_limit": true, "cap_observed": true,
}

const prefix = "openwop."

// attributes returns those attributes in spanAttributes that are strings, bools or whole numbers.
func attributes(attrs map[string]any) []attribute.KeyValue {
	var out []attribute.KeyValue
	for name, value := range attrs {
		name = strings.TrimPrefix(name, prefix)
		if !spanAttributes[name] {
			continue
		}
		key := attribute.Key(prefix + name)
		switch v := value.(type) {
		case string:
			out = append(out, key.String(bounded(v)))
		case bool:
			out = append(out, key.Bool(v))
		case int:
			out = append(out, key.Int(v))
		case int64:
			out = append(out, key.Int64(v))
		case uint64:
			out = append(out, key.Int64(int64(min(v, 1<<63-1))))
		}
	}
	return out
}

// bounded returns a copy of at most maxText bytes of valid UTF-8.
func bounded(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	if !utf8.ValidString(s) {
		return strings.ToValidUTF8(s, "")
	}
	return strings.Clone(s)
}
