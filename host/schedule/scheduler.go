// Package schedule decides when a connection runs by itself: which instant is
// due, whether its run may start, whether a failure is tried again, and what is
// written down about it.
//
// It starts nothing itself. A Starter makes a run durable together with the
// schedule's own document, so that a crash repeats nothing and loses nothing;
// how the run went is read from the store. All texts of connectors,
// manifests and owners are data here; an expression reaches the cron library
// only after it was checked.
//
// A Scheduler's methods may be called concurrently.
package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Store is the part of store.Store that a Scheduler needs.
type Store interface {
	Write(ctx context.Context, writes ...store.Write) error
	Document(ctx context.Context, kind store.Kind, id string) (store.Document, error)
	Documents(ctx context.Context, q store.DocumentQuery) ([]store.Document, error)
	Leases(ctx context.Context) ([]store.Lease, error)
	Run(ctx context.Context, id store.RunID) (store.Run, error)
	Runs(ctx context.Context, connection store.ConnectionID, before store.RunID, limit int) ([]store.Run, error)
	Events(ctx context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error)
	Watch(id store.RunID) (wake <-chan struct{}, stop func())
}

// A Starter starts automatic runs.
type Starter interface {
	// StartScheduled returns once the run is durable, without waiting for its guest;
	// what With returns is in the same commit. *Refused when a pre-start
	// check says no, which leaves no trace; *store.ConflictError when a document was
	// not as With expected.
	StartScheduled(ctx context.Context, q Start) (store.Run, error)
	// RecordRefused makes the run of a start that was refused: one that consists of
	// run.failed with launch_failed. The run returned is over.
	RecordRefused(ctx context.Context, q Start, r *Refused) (store.Run, error)
}

// A Start is an automatic start.
type Start struct {
	Connection     store.ConnectionID
	Trigger        string // scheduled or retry
	Attempt        int
	RetryOf        store.RunID
	CatchUp        bool
	AutomationMode string
	// With is called with the run that is accepted, maybe more than once. It neither
	// blocks nor uses the store.
	With func(store.Run) []store.Write
}

// Refused is why a run was not started: by a code of run.Refusal.
type Refused struct {
	Code    string
	Message string
	Err     error
}

func (e *Refused) Error() string { return e.Code + ": " + e.Message }
func (e *Refused) Unwrap() error { return e.Err }

// A Source says what a connection is at this moment.
type Source interface {
	// ScheduledConnection returns store.ErrNotFound for one that is not there.
	ScheduledConnection(ctx context.Context, id store.ConnectionID) (Connection, error)
}

// A Connection is what gates look at.
type Connection struct {
	ConnectorID store.ConnectorID
	Grant       *store.Grant // nil is the owner's own
	Policy      Policy
	// NotReady is the first code of run.Refusal that refuses a start now, apart
	// from those of grant and active run; "" when none does.
	NotReady string
}

// Deps are what a Scheduler works with. Store, Starter and Source are needed.
type Deps struct {
	Store   Store
	Starter Starter
	Source  Source
	Now     func() time.Time         // the wall clock; nil is time.Now
	Rand    func(n int64) int64      // 0 to n-1; nil is math/rand
	Log     *slog.Logger             // nil: none
	Done    func(host.Tick)          // after each history record is durable; nil for none
	Changed func(store.ConnectionID) // after a schedule or mark changed; nil for none
	// Shortest is the least interval of a schedule that is saved, in whole seconds
	// from 1 s; 0 is DefaultShortest. Stored schedules keep theirs.
	Shortest time.Duration
}

// DefaultShortest is the least interval unless the owner sets another: a run
// starts a worker and may start a browser.
const DefaultShortest = 10 * time.Second

// Times of the loop.
const (
	lookEvery    = 30 * time.Second // at least, for jumps of the clock
	jump         = 60 * time.Second // of the clock: all schedules are looked at again
	late         = 60 * time.Second // a due time that passed longer ago was missed
	againAfter   = 30 * time.Second // after a fault of the host
	defaultGates = 30 * time.Minute // that the gates of a due time may take
)

// A Scheduler runs the schedules of one store. Start and Stop are called once
// each in effect; everything else also works while it does not run.
type Scheduler struct {
	d     Deps
	look  time.Duration
	gates time.Duration

	wake     chan struct{} // capacity 1: something is due earlier
	stopping chan struct{} // closed: nothing starts any more
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup // loop and ticks

	mu      sync.Mutex // guards the rest; not held across I/O
	state   int        // fresh, running, stopped
	plans   map[store.ConnectionID]*planned
	started time.Time
}

const (
	fresh = iota
	running
	stopped
)

// A planned schedule is what the loop knows of it.
type planned struct {
	due    time.Time // zero: never
	firing bool      // its gates are under way
}

// New makes a scheduler that does not run yet.
func New(d Deps) *Scheduler {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Rand == nil {
		d.Rand = rand.Int64N
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Done == nil {
		d.Done = func(host.Tick) {}
	}
	d.Shortest = cmp.Or(d.Shortest, DefaultShortest)
	if d.Changed == nil {
		d.Changed = func(store.ConnectionID) {}
	}
	s := &Scheduler{d: d, look: lookEvery, gates: defaultGates, wake: make(chan struct{}, 1), stopping: make(chan struct{}),
		plans: map[store.ConnectionID]*planned{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

func (s *Scheduler) now() time.Time { return s.d.Now() }

// Start reads all schedules, takes over the ticks that an earlier start left open
// and begins to dispatch. Runs of earlier starts must have been reconciled.
// Starting it again does nothing.
func (s *Scheduler) Start(ctx context.Context) error {
	s.mu.Lock()
	if s.state != fresh {
		s.mu.Unlock()
		return nil
	}
	s.state, s.started = running, s.now()
	s.mu.Unlock()
	if err := s.takeOver(ctx); err != nil {
		s.mu.Lock()
		s.state = fresh
		s.mu.Unlock()
		return err
	}
	s.work.Go(s.loop)
	return nil
}

// Running reports whether due runs start.
func (s *Scheduler) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == running
}

// Quiesce stops it from starting anything, also retries that wait.
// What was started is still followed until Stop.
func (s *Scheduler) Quiesce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != stopped {
		close(s.stopping)
	}
	s.state = stopped
}

// Stop waits until the ticks whose runs are over are recorded; those that ctx
// does not wait for stay open for the next start.
func (s *Scheduler) Stop(ctx context.Context) {
	s.Quiesce()
	defer s.cancel()
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		s.cancel()
		<-done
	}
}

func (s *Scheduler) stopped() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// takeOver plans all schedules. A due time of a clock that was wrong is
// computed again, a tick that is open followed on.
func (s *Scheduler) takeOver(ctx context.Context) error {
	return s.each(ctx, func(d store.Document) error {
		id := store.ConnectionID(d.ID)
		doc, err := decode(d)
		if err != nil {
			s.poison(id, err)
			return nil
		}
		if doc.Grant != nil { // a host start is a restart
			if doc, err = s.change(ctx, id, func(d *document) ([]store.Write, error) {
				if d.Grant == nil {
					return nil, errUnchanged
				}
				d.Grant.Restarted = true
				return nil, nil
			}); err != nil {
				return err
			}
		}
		s.plan(id, doc)
		if doc.Open != nil {
			s.work.Go(func() { s.guarded(id, func() { s.follow(id, *doc.Open) }) })
		}
		s.review(ctx, id)
		return nil
	})
}

// each calls f with all stored schedules, in the order of their connections.
func (s *Scheduler) each(ctx context.Context, f func(store.Document) error) error {
	const page = 200
	for after := ""; ; {
		docs, err := s.d.Store.Documents(ctx, store.DocumentQuery{Kind: store.Schedules, After: after, Limit: page})
		if err != nil {
			return fmt.Errorf("list schedules: %w", err)
		}
		for _, d := range docs {
			if err := f(d); err != nil {
				return err
			}
			after = d.ID
		}
		if len(docs) < page {
			return nil
		}
	}
}

// plan tells the loop when a schedule is due.
func (s *Scheduler) plan(id store.ConnectionID, d document) {
	due := d.DueAt
	if !d.Definition.Enabled || d.Poisoned {
		due = time.Time{}
	}
	s.planAt(id, due)
	s.d.Changed(id)
}

func (s *Scheduler) planAt(id store.ConnectionID, due time.Time) {
	s.mu.Lock()
	p := s.plans[id]
	if p == nil {
		p = &planned{}
		s.plans[id] = p
	}
	earlier := !due.IsZero() && (p.due.IsZero() || due.Before(p.due))
	p.due = due
	s.mu.Unlock()
	if earlier {
		s.awake()
	}
}

func (s *Scheduler) unplan(id store.ConnectionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.plans, id)
}

func (s *Scheduler) awake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// guarded keeps what a schedule panics with away from all others: it is disabled
// and says so.
func (s *Scheduler) guarded(id store.ConnectionID, f func()) {
	defer func() {
		if p := recover(); p != nil {
			s.poison(id, p)
		}
	}()
	f()
}

func (s *Scheduler) poison(id store.ConnectionID, with any) {
	defer func() {
		if p := recover(); p != nil { // then it is not due again before the next start
			s.d.Log.Error("schedule is not run", "connection", id, "panic", p)
			s.planAt(id, time.Time{})
		}
	}()
	s.d.Log.Error("schedule disabled itself", "connection", id, "panic", with)
	now := s.now().UTC()
	said := s.failed(id, "schedule_poisoned", now)
	_, err := s.change(s.ctx, id, func(d *document) ([]store.Write, error) {
		d.Definition.Enabled, d.Poisoned, d.LastError = false, true, "schedule_poisoned"
		d.Slot, d.DueAt = time.Time{}, time.Time{}
		return s.record(s.ctx, id, said)
	})
	if err != nil && !errors.As(err, new(*host.Refusal)) {
		s.d.Log.Error("schedule is not run", "connection", id, "error", err)
		s.planAt(id, time.Time{})
		return
	}
	s.d.Done(said)
}

// loop is the one goroutine that waits. It sleeps until something is due, looks
// at the clock at least every 30 s, and is woken by changes.
func (s *Scheduler) loop() {
	wall, began := s.now().Round(0), time.Now()
	for {
		now, passed := s.now().Round(0), time.Since(began)
		if d := now.Sub(wall) - passed; d > jump || d < -jump {
			s.d.Log.Warn("the clock jumped; all schedules are looked at again", "by", d)
			s.reviewAll()
		}
		wall, began = now, time.Now()
		timer := time.NewTimer(s.fireDue(now))
		select {
		case <-s.stopping:
			timer.Stop()
			return
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// fireDue starts what is due, and says how long nothing more is.
func (s *Scheduler) fireDue(now time.Time) time.Duration {
	wait := s.look
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.plans {
		switch {
		case p.due.IsZero() || p.firing:
		case p.due.After(now):
			wait = min(wait, p.due.Sub(now))
		default:
			p.firing = true
			s.work.Go(func() { s.fire(id) })
		}
	}
	return wait
}

// fire dispatches one due schedule, and follows its run.
func (s *Scheduler) fire(id store.ConnectionID) {
	var o *open
	s.guarded(id, func() {
		var err error
		if o, err = s.dispatch(id); err != nil && s.ctx.Err() == nil {
			s.d.Log.Error("due run is put off", "connection", id, "error", err)
			s.planAt(id, s.now().Add(againAfter))
		}
	})
	s.mu.Lock()
	if p := s.plans[id]; p != nil {
		p.firing = false
	}
	s.mu.Unlock()
	s.awake()
	if o != nil {
		s.guarded(id, func() { s.follow(id, *o) })
	}
}

func (s *Scheduler) reviewAll() {
	s.mu.Lock()
	ids := make([]store.ConnectionID, 0, len(s.plans))
	for id := range s.plans {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	for _, id := range ids {
		s.review(s.ctx, id)
	}
}

// review computes a due time again that the clock, as it is now, would not have
// set: it was set by one that was ahead. What is due already stays so.
func (s *Scheduler) review(ctx context.Context, id store.ConnectionID) {
	s.guarded(id, func() {
		_, err := s.change(ctx, id, func(d *document) ([]store.Write, error) {
			now := s.now()
			if !d.Definition.Enabled || d.Poisoned || !d.DueAt.IsZero() && !d.DueAt.After(now) {
				return nil, errUnchanged
			}
			t, err := timetableOf(d.Definition)
			if err != nil {
				return nil, err
			}
			slot, err := t.next(now, d.last(t))
			if err == nil && !d.Slot.IsZero() && !slot.Before(d.Slot) {
				return nil, errUnchanged
			}
			return nil, s.due(d, slot, err)
		})
		if err != nil && !errors.As(err, new(*host.Refusal)) && s.ctx.Err() == nil {
			s.d.Log.Error("schedule was not looked at", "connection", id, "error", err)
		}
	})
}
