package patience_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/patience"
)

// A budget is never shorter than on an idle machine, grows with the load, and does so
// within bounds.
func TestBudgetsGrow(t *testing.T) {
	for _, c := range []struct {
		text       string
		processors int
		d, want    time.Duration
	}{
		{"0.10 0.20 0.30 1/200 77\n", 2, 5 * time.Second, 5 * time.Second},
		{"8.00 2.00 1.00 3/200 77\n", 2, 5 * time.Second, 20 * time.Second},
		{"0.50 0.20 0.30 12/200 77\n", 2, 5 * time.Second, 30 * time.Second}, // busy since a moment ago
		{"90.0 80.0 70.0 95/200 77\n", 2, 5 * time.Second, 40 * time.Second},
		{"90.0 80.0 70.0 95/200 77\n", 2, time.Minute, 5 * time.Minute},
		{"90.0 80.0 70.0 95/200 77\n", 2, 10 * time.Minute, 10 * time.Minute},
		{"8.00 2.00 1.00 3/200 77\n", 16, 5 * time.Second, 5 * time.Second},
		{"", 2, 5 * time.Second, 5 * time.Second},
		{"x y z w v", 0, 5 * time.Second, 5 * time.Second},
	} {
		if got := patience.Grown(c.d, c.text, c.processors); got != c.want {
			t.Errorf("%v at %q on %d: %v, want %v", c.d, c.text, c.processors, got, c.want)
		}
	}
	if got := patience.BusyBy("8.00 2.00 1.00 3/200 77", 2); got != "the machine is busy: 8 tasks want its 2 processors" {
		t.Errorf("busy: %q", got)
	}
	if got := patience.BusyBy("2.00 2.00 1.00 1/200 77", 2); got != "" {
		t.Errorf("not busy: %q", got)
	}
}

// What is awaited is given up when its time is over by the load of that moment, and
// the cause says whether the machine was busy.
func TestWithin(t *testing.T) {
	for _, c := range []struct {
		tasks float64
		after time.Duration
		busy  bool
	}{{0, 5 * time.Second, false}, {3, 15 * time.Second, true}, {1000, 40 * time.Second, true}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, stop := patience.WithinLoad(t.Context(), 5*time.Second, func() float64 { return c.tasks })
			defer stop()
			<-ctx.Done()
			late, ok := errors.AsType[*patience.Late](context.Cause(ctx))
			if took := time.Since(began); took != c.after || !ok || (late.Busy != "") != c.busy {
				t.Errorf("%v tasks: after %v: %v", c.tasks, took, context.Cause(ctx))
			}
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(late, context.DeadlineExceeded) {
				t.Errorf("%v tasks: %v", c.tasks, ctx.Err())
			}
			child, end := context.WithCancel(ctx)
			defer end()
			if !errors.Is(child.Err(), context.DeadlineExceeded) {
				t.Errorf("a child: %v", child.Err())
			}
		})
	}
}

// A machine that calms down ends the wait of the budget that it had grown to.
func TestWithinCalmsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var tasks atomic.Int64
		tasks.Store(2)
		ctx, stop := patience.WithinLoad(t.Context(), 5*time.Second, func() float64 { return float64(tasks.Load()) })
		defer stop()
		time.Sleep(6 * time.Second)
		tasks.Store(0)
		<-ctx.Done()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("after %v", took)
		}
	})
}

// A context that is given up, or whose parent ends, is canceled and not late.
func TestWithinCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		ctx, stop := patience.WithinLoad(parent, 5*time.Second, func() float64 { return 0 })
		cancel()
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Error(ctx.Err())
		}
		stop()
		other, stop := patience.WithinLoad(t.Context(), 5*time.Second, func() float64 { return 0 })
		stop()
		if !errors.Is(other.Err(), context.Canceled) {
			t.Error(other.Err())
		}
	})
}
