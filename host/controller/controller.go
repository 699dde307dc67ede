// Package controller holds the active runs of a process. It admits them up to a limit, performs each in its own
// goroutine, cancels, pauses and resumes them by id, stops them on shutdown, and closes runs in the store that
// nobody performs any more.
//
// It knows neither modules nor connections: its caller passes a function that prepares a run.
package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// The limits of a host (docs/spec/security.md, "Limits").
const (
	DefaultRuns     = 8  // host.runs
	MaxRuns         = 64 // the upper bound of Options.Runs
	DefaultAccepted = 64

	reservedFraction = 8 // one place in eight is reserved for runs that the host starts by itself
	shareFraction    = 4 // one key may have a quarter of the accepted runs
)

// Options configure a Controller.
type Options struct {
	// Runs is how many runs execute at once; 0 means DefaultRuns. A run that waits for its owner or is paused
	// does not count.
	Runs int
	// Accepted is how many runs may be active; 0 means DefaultAccepted. Runs that wait for their owner or are
	// paused do not count, but since each keeps a process, there are at most twice as many in all. Beyond that,
	// the run that has waited longest and can sleep makes room for the next. One place in eight is reserved for
	// runs that the host starts by itself.
	Accepted int
	// Share is how many runs of one key may be active, including those that wait; 0 means a quarter of Accepted.
	Share int
	// Grace is how long a shutdown waits for active runs; 0 means 30 s.
	Grace time.Duration
	// Reconcile closes runs that are active in the store but that nobody performs; live reports whether this
	// process performs a run. It is called at the interval Every (0 means 15 s) and when a run ended without a
	// result. Nil disables it.
	Reconcile func(ctx context.Context, live func(store.RunID) bool) error
	Every     time.Duration
	// MemoryShort reports whether runs that wait for their owner should sleep to free memory. It is called at
	// least every second while such a run can sleep; nil means never.
	MemoryShort func() bool
	// Count receives events for metrics and must not block; nil discards them.
	Count func(Event)
	Log   *slog.Logger // nil discards
}

// An Event is what Options.Count receives.
type Event string

const (
	Accepted  Event = "accepted"
	Refused   Event = "refused"
	Succeeded Event = "succeeded"
	Failed    Event = "failed"
	Cancelled Event = "cancelled"
	Panicked  Event = "panicked" // by a bug in the host; Reconcile closes the run
)

// Store is the part of the store that the controller reads.
type Store interface {
	Run(ctx context.Context, id store.RunID) (store.Run, error)
}

// A Controller holds the active runs of a process. All methods may be called concurrently.
type Controller struct {
	options Options
	store   Store
	slots   *slots

	running            sync.WaitGroup // goroutines of runs
	stop               context.CancelFunc
	background         sync.WaitGroup // the controller's own goroutines
	endedWithoutResult chan struct{}  // capacity 1: a run ended without a result

	mu      sync.Mutex // guards what follows; never held across I/O
	closing bool
	drained chan struct{} // closed when closing and admitted is 0
	// Invariant: admitted counts starts in progress and the entries of active.
	admitted    int
	active      map[store.RunID]*entry
	byRequester map[string]int // admitted by requester; "" is the host
}

// New returns a running controller that holds no runs.
func New(st Store, o Options) *Controller {
	o.Runs = min(cmp.Or(o.Runs, DefaultRuns), MaxRuns)
	o.Accepted = cmp.Or(o.Accepted, DefaultAccepted)
	o.Share = cmp.Or(o.Share, max(1, o.Accepted/shareFraction))
	o.Grace = cmp.Or(o.Grace, 30*time.Second)
	o.Every = cmp.Or(o.Every, 15*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Count == nil {
		o.Count = func(Event) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &Controller{options: o, store: st, slots: newSlots(o.Runs), stop: stop, active: map[store.RunID]*entry{},
		byRequester:        map[string]int{},
		endedWithoutResult: make(chan struct{}, 1), drained: make(chan struct{})}
	c.background.Go(func() { c.reconcile(ctx) })
	c.background.Go(func() { c.freeMemory(ctx) })
	return c
}

// A Job is a run that passed its checks, with what the controller needs to perform it.
type Job struct {
	Run *run.Run
	// With is passed to run.Accept.
	With func(store.Run) []store.Write
	// Ended is called once: with the result when the run is over, with nil when it was not accepted or ended
	// without a result. It may be nil.
	Ended func(*run.Result)
	// Abandon stops the guest of a run whose goroutine panicked. It may be nil.
	Abandon func()
}

// An entry is an active run.
type entry struct {
	Job
	slot     *slot
	accepted bool
	done     chan struct{} // closed at the end, after result is set
	result   *run.Result   // nil for a run that ended without one
}

// Start is StartFor for a run that the host starts by itself.
func (c *Controller) Start(ctx context.Context,
	prepare func(context.Context, run.Slots) (Job, error)) (store.Run, error) {
	return c.StartFor(ctx, "", prepare)
}

// StartFor admits a run for the key by, then prepares and accepts it. It returns once the run is durable,
// without waiting for the guest. prepare gets the slot in which the run executes. The error is prepare's,
// Accept's, or a *run.Refusal: unavailable while the host stops, rate_limited above the limit of accepted runs
// or above the share of one key.
func (c *Controller) StartFor(ctx context.Context, by string,
	prepare func(context.Context, run.Slots) (Job, error)) (rec store.Run, err error) {
	if err := c.admit(ctx, by); err != nil {
		c.options.Count(Refused)
		return store.Run{}, err
	}
	started := false
	defer func() {
		if !started { // also after a panic
			c.options.Count(Refused)
			c.release(by, nil)
		}
	}()
	p := c.slots.newSlot(by)
	job, err := prepare(ctx, p)
	if err != nil {
		return store.Run{}, err
	}
	e := &entry{Job: job, slot: p, done: make(chan struct{})}
	if rec, err = c.accept(ctx, e); err != nil {
		e.setEnded(nil)
		return store.Run{}, err
	}
	started = true
	c.options.Count(Accepted)
	c.running.Go(func() { c.perform(e) })
	return rec, nil
}

// accept makes the run durable. The run counts as active before that, so that a reconciler that sees its lease
// does not close it.
func (c *Controller) accept(ctx context.Context, e *entry) (store.Run, error) {
	if err := c.register(e); err != nil {
		return store.Run{}, err
	}
	rec, err := e.Run.Accept(ctx, e.With)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.accepted = err == nil; err != nil {
		delete(c.active, e.Run.ID)
	}
	return rec, err
}

func (e *entry) setEnded(r *run.Result) {
	if e.Ended != nil {
		e.Ended(r)
	}
}

var errStopping = &run.Refusal{Code: "unavailable", Message: "the host is stopping"}

// admit reserves a place among the accepted runs. If all are taken, it tries to put a waiting run to sleep.
func (c *Controller) admit(ctx context.Context, by string) error {
	for until := time.Now().Add(suspendTimeout); ; {
		longest, err := c.reserve(by)
		if longest == nil || !time.Now().Before(until) || ctx.Err() != nil {
			return err
		}
		c.suspend(ctx, longest)
	}
}

// reserve reserves a place. If none is free but a run could sleep to make room, it returns that run with the error.
func (c *Controller) reserve(by string) (longest *entry, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil, errStopping
	}
	if longest, err := c.checkLimits(by); err != nil {
		return longest, err
	}
	c.admitted++
	c.byRequester[by]++
	return nil, nil
}

// checkLimits returns why no further run can be admitted, and the run that could sleep to make room, if any. The caller
// holds mu.
func (c *Controller) checkLimits(by string) (longest *entry, err error) {
	limit, most := c.options.Accepted, 2*c.options.Accepted
	if by != "" {
		limit, most = limit-limit/reservedFraction, most-most/reservedFraction
	}
	_, _, away := c.slots.count()
	switch going := c.admitted - away; {
	case strings.HasPrefix(by, "key:") && c.byRequester[by] >= c.options.Share:
		return nil, errLimit("key", c.options.Share, "%d runs of this key are active, which is its share of this host",
			c.byRequester[by])
	case going >= limit:
		return nil, errLimit("global", limit, "%d runs are under way, which is the limit of this host", going)
	case c.admitted >= most:
		return c.longestWaiting(),
			errLimit("global", most, "%d runs are active or wait, which is the limit of this host", c.admitted)
	}
	return nil, nil
}

func errLimit(scope string, limit int, format string, n int) error {
	return &run.Refusal{Code: "rate_limited", Message: fmt.Sprintf(format, n),
		Details: map[string]any{"scope": scope, "limit": limit, "retryAfterMs": 5000}}
}

// Full returns a *run.Refusal that says why the host could start no run of its own now, or nil if it could.
func (c *Controller) Full() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	longest, err := c.checkLimits("")
	if longest != nil {
		return nil
	}
	return err
}

// register registers a run under its id.
func (c *Controller) register(e *entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return errStopping
	}
	c.active[e.Run.ID] = e
	return nil
}

// release gives an accepted place back. e is nil for a start that failed.
func (c *Controller) release(by string, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e != nil && c.active[e.Run.ID] == e { // a suspended run may be active again already
		delete(c.active, e.Run.ID)
	}
	if c.byRequester[by]--; c.byRequester[by] == 0 {
		delete(c.byRequester, by)
	}
	if c.admitted--; c.closing && c.admitted == 0 {
		close(c.drained)
	}
}

// perform runs e to its end. It is the goroutine of a run.
func (c *Controller) perform(e *entry) {
	result, err := c.do(e)
	e.slot.Release() // a run gives its slot back by itself only at a regular end
	if errors.Is(err, run.ErrSuspended) {
		err = nil // it continues on another host, or later
	} else if err != nil {
		c.options.Log.Error("run_came_to_no_end", "run", e.Run.ID, "error", err)
	} else {
		e.result = result
		c.options.Count(countOf(result))
	}
	e.setEnded(e.result)
	c.release(e.slot.by, e)
	close(e.done)
	if err != nil { // nobody holds its lease any more
		select {
		case c.endedWithoutResult <- struct{}{}:
		default:
		}
	}
}

// do performs a run. A panic ends the run and not the host.
func (c *Controller) do(e *entry) (result *run.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.options.Count(Panicked)
			if e.Abandon != nil {
				e.Abandon()
			}
			result, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	result, err = e.Run.Do(context.Background())
	if err == nil && result == nil {
		err = errors.New("no result")
	}
	return result, err
}

func countOf(r *run.Result) Event {
	switch r.Status {
	case "succeeded":
		return Succeeded
	case "cancelled":
		return Cancelled
	}
	return Failed
}

// Stats are the figures of a controller at one moment.
type Stats struct {
	Accepted int // active runs, and starts in progress
	Running  int // runs that execute
	Queued   int // runs that wait for a slot
	Idle     int // runs that wait for their owner or are paused
	Runs     int // limit of Running
	Limit    int // limit of Accepted
}

// Stats returns the current figures.
func (c *Controller) Stats() Stats {
	running, queued, away := c.slots.count()
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{Accepted: c.admitted, Running: running, Queued: queued, Idle: away, Runs: c.options.Runs,
		Limit: c.options.Accepted}
}
