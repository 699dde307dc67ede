package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// maxState bounds tracestate, in bytes (W3C trace context).
const maxState = 512

// parentLength is that of a traceparent of version 00.
const parentLength = 55

// ParseParent returns traceparent and tracestate as they may be stored and sent
// on: checked, canonical and copied. false when traceparent is not one; a
// tracestate that cannot be read is dropped, as the standard asks.
func ParseParent(traceparent, tracestate string) (parent, state string, ok bool) {
	c, ok := parse(traceparent, tracestate)
	if !ok {
		return "", "", false
	}
	parent, state = inject(c)
	return parent, state, true
}

type linkKey struct{}

// WithParent has spans that are started under ctx belong to a trace that began
// elsewhere. Headers that are not one change nothing.
func WithParent(ctx context.Context, traceparent, tracestate string) context.Context {
	c, ok := parse(traceparent, tracestate)
	if !ok {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, c)
}

// WithLink has the next span that is started under ctx begin a trace of its own,
// linked to the one that it was asked for under: that may be over long
// before a run is.
func WithLink(ctx context.Context, traceparent, tracestate string) context.Context {
	ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	c, ok := parse(traceparent, tracestate)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, linkKey{}, c)
}

// links are given to the first span of a trace only.
func links(ctx context.Context) []trace.Link {
	c, ok := ctx.Value(linkKey{}).(trace.SpanContext)
	if !ok || trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	return []trace.Link{{SpanContext: c}}
}

// Inject returns the headers that continue the trace of ctx; "" without one.
func Inject(ctx context.Context) (traceparent, tracestate string) {
	return inject(trace.SpanContextFromContext(ctx))
}

func inject(c trace.SpanContext) (traceparent, tracestate string) {
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), c), headers)
	return headers["traceparent"], headers["tracestate"]
}

func parse(traceparent, tracestate string) (trace.SpanContext, bool) {
	// Later versions may be longer; what is read of them is the same.
	if len(traceparent) < parentLength || len(traceparent) > maxText || strings.ToLower(traceparent) != traceparent {
		return trace.SpanContext{}, false
	}
	if len(tracestate) > maxState {
		tracestate = ""
	}
	headers := propagation.MapCarrier{"traceparent": strings.Clone(traceparent), "tracestate": strings.Clone(tracestate)}
	c := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), headers))
	return c, c.IsValid()
}
