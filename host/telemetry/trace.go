package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// TraceOptions say where spans go.
type TraceOptions struct {
	Version string
	HostID  string
	// Exporter gets the spans; nil is OTLP over HTTP where the environment names an
	// endpoint, and none where it does not.
	Exporter sdk.SpanExporter
	// Log is told of exports that fail, as OpenTelemetry reports them for the whole
	// process; nil leaves that as it is.
	Log *slog.Logger
}

// endpoints are the variables that turn tracing on. OpenTelemetry's others say
// how; without one of these none of them is read.
var endpoints = []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}

// Spans are the spans of one host. All methods may be called concurrently. The
// zero Spans records none.
type Spans struct {
	tracer   trace.Tracer
	provider *sdk.TracerProvider // nil: nothing is recorded
}

// OpenSpans begins to record spans, if there is somebody to take them. Whether
// that server can be reached is not looked at: spans that it does not take are
// dropped, and nothing waits for it.
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

// Recording reports whether spans go anywhere.
func (s *Spans) Recording() bool { return s.provider != nil }

// Close hands over what is recorded, as long as ctx lasts.
func (s *Spans) Close(ctx context.Context) error {
	if s.provider == nil {
		return nil
	}
	return errors.Join(s.provider.ForceFlush(ctx), s.provider.Shutdown(ctx))
}

// Start begins a span below that of ctx, or below the trace that ctx was given
// by WithParent. The name is one of A251; what follows openwop.activity. or
// openwop.node. is a name that the host chose or checked. Attributes that A251
// does not list are left out. The returned function ends the span; what it says
// of err is its kind, never its text.
func (s *Spans) Start(ctx context.Context, name string, attrs map[string]any) (context.Context, func(err error)) {
	tracer := s.tracer
	if tracer == nil {
		tracer = noop.Tracer{}
	}
	ctx, span := tracer.Start(ctx, bounded(name), trace.WithAttributes(attributes(attrs)...), trace.WithLinks(links(ctx)...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, kindOf(err))
		}
		span.End()
	}
}

// kindOf is an error without its text, which may hold what a guest or a server
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
