// Package patience is how long the host waits for what starts, or answers an owner: a
// browser, a worker, a compilation, another host on this machine, a page. On a busy
// machine all of them are slow, and slow is not broken. It trusts the kernel's word
// about the load, and nothing of a guest.
package patience

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// most bounds the factor by which a budget grows.
	most = 8
	// longest bounds a grown budget; a budget that is longer does not grow.
	longest = 5 * time.Minute
)

// A load is the number of runnable tasks and of processors.
type load struct{ tasks, processors float64 }

// now returns the machine's load, or 0 if the kernel does not report it.
func now() load {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return load{0, 1}
	}
	return parse(string(text), runtime.GOMAXPROCS(0))
}

// parse parses /proc/loadavg. The currently runnable tasks count as well as the average of a
// minute, since a machine that has just become busy is busy.
func parse(text string, processors int) load {
	l := load{0, float64(max(processors, 1))}
	fields := strings.Fields(text)
	if len(fields) < 4 {
		return l
	}
	average, _ := strconv.ParseFloat(fields[0], 64)
	running, _, _ := strings.Cut(fields[3], "/")
	at, _ := strconv.ParseFloat(running, 64)
	l.tasks = max(average, at)
	return l
}

// factor returns how much longer everything takes than on an idle machine.
func (l load) factor() float64 { return min(max(l.tasks/l.processors, 1), most) }

// grown scales d by the load.
func (l load) grown(d time.Duration) time.Duration {
	return max(d, min(time.Duration(float64(d)*l.factor()), longest))
}

// For returns how long to wait for something that takes at most d on an idle machine, given the
// current load.
func For(d time.Duration) time.Duration { return now().grown(d) }

// Busy describes how busy the machine is, or returns "" if it is not.
func Busy() string { return now().busy() }

func (l load) busy() string {
	if l.tasks <= 1.5*l.processors {
		return ""
	}
	return fmt.Sprintf("the machine is busy: %.0f tasks want its %.0f processors", l.tasks, l.processors)
}

// A Late error is the cause of a context whose budget is used up. It matches
// context.DeadlineExceeded.
type Late struct {
	After time.Duration
	Busy  string // result of Busy at that time
}

func (e *Late) Error() string {
	if e.Busy != "" {
		return fmt.Sprintf("no answer in %s; %s", e.After.Round(time.Second), e.Busy)
	}
	return fmt.Sprintf("no answer in %s", e.After.Round(time.Second))
}

// Is reports whether target is context.DeadlineExceeded.
func (e *Late) Is(target error) bool { return target == context.DeadlineExceeded }

// Within returns a context that ends after d, or later while the machine is so busy that d may not
// suffice. Its cause is then a *[Late].
func Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return within(ctx, d, now)
}

func within(ctx context.Context, d time.Duration, now func() load) (context.Context, context.CancelFunc) {
	inner, end := context.WithCancelCause(ctx)
	w := &waiting{Context: inner}
	began := time.Now()
	var mu sync.Mutex // guards timer against its first firing
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		l, took := now(), time.Since(began)
		if left := l.grown(d) - took; left > 0 {
			timer.Reset(left)
			return
		}
		end(&Late{took, l.busy()})
	})
	return w, func() {
		mu.Lock()
		timer.Stop()
		mu.Unlock()
		end(nil)
	}
}

// A waiting context reports DeadlineExceeded rather than Canceled when its budget is used up.
type waiting struct{ context.Context }

func (w *waiting) Err() error {
	err := w.Context.Err()
	if _, late := context.Cause(w.Context).(*Late); err != nil && late { //nolint:errorlint // the cause is exactly that
		return context.DeadlineExceeded
	}
	return err
}
