package patience

import (
	"context"
	"time"
)

// WithinLoad is Within on a machine of one processor with a load of its own.
func WithinLoad(ctx context.Context, d time.Duration, tasks func() float64) (context.Context, context.CancelFunc) {
	return within(ctx, d, func() load { return load{tasks(), 1} })
}

// Grown is For under what a kernel says.
func Grown(d time.Duration, text string, processors int) time.Duration {
	return parse(text, processors).grown(d)
}

// BusyBy is Busy by what a kernel says.
func BusyBy(text string, processors int) string { return parse(text, processors).busy() }
