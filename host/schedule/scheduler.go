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
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Times of the loop.
const (
	lookEvery    = 30 * time.Second // maximum interval between checks, for jumps of the clock
	clockJump    = 60 * time.Second // a larger jump of the clock reviews all schedules
	missedAfter  = 60 * time.Second // a due time that passed longer ago was missed
	againAfter   = 30 * time.Second // after a fault of the host
	defaultGates = 30 * time.Minute // for the gates of a due time
)

// A Scheduler runs the schedules of one store. Only the first Start and the first Stop have an
// effect; everything else also works while it does not run.
type Scheduler struct {
	*lifetime
	*history
	*marks
	documents  *documents
	plans      *plans
	gates      *gates
	dispatcher *dispatcher
	follower   *follower

	store    Store
	hosts    Hosts
	source   Source
	now      func() time.Time
	log      *slog.Logger
	done     func(host.Tick)
	shortest time.Duration
	look     time.Duration  // maximum interval between checks of the clock
	work     sync.WaitGroup // the loop and the ticks
}

// New returns a scheduler that is not started.
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
	if d.Hosts == nil {
		d.Hosts = alone{}
	}
	d.Starter = boundedStarter{d.Starter, make(chan struct{}, maxStarts)}
	d.Shortest = cmp.Or(d.Shortest, DefaultShortest)
	lt := &lifetime{stopping: make(chan struct{})}
	lt.ctx, lt.cancel = context.WithCancel(context.Background())
	h, ms := &history{d.Store}, &marks{d.Store}
	ps := &plans{wake: make(chan struct{}, 1), planned: map[store.ConnectionID]*planned{}}
	ds := &documents{d.Store, ps, d.Rand}
	gs := &gates{lt, d.Source, ds, ms, defaultGates}
	return &Scheduler{
		lifetime: lt, history: h, marks: ms, documents: ds, plans: ps, gates: gs,
		dispatcher: &dispatcher{lt, d.Store, d.Starter, d.Now, d.Done, ds, ps, gs, h, d.Hosts},
		follower:   &follower{lt, d.Store, d.Starter, d.Source, d.Done, d.Log, ds, ps, ms, h},
		store:      d.Store, hosts: d.Hosts, source: d.Source, now: d.Now, log: d.Log, done: d.Done,
		shortest: d.Shortest, look: lookEvery,
	}
}

// Start reads all schedules, takes over the ticks that an earlier start left open, and begins to
// dispatch. Runs of earlier starts must have been reconciled. Further calls do nothing.
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
	s.work.Go(s.refresh)
	return nil
}

// Stop waits until the ticks of finished runs are recorded, at most until ctx ends. Others stay
// open for the next start.
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

// takeOver plans all schedules at a start: it reviews their due times and follows open ticks.
func (s *Scheduler) takeOver(ctx context.Context) error {
	return s.documents.each(ctx, func(d store.Document) error {
		id := store.ConnectionID(d.ID)
		doc, err := decode(d)
		if err != nil {
			s.poison(id, err)
			return nil
		}
		if doc.Grant != nil { // starting the host restarts it
			if doc, err = s.documents.change(ctx, id, func(d *document) ([]store.Write, error) {
				if d.Grant == nil {
					return nil, errUnchanged
				}
				d.Grant.Restarted = true
				return nil, nil
			}); err != nil {
				return err
			}
		}
		s.plans.planDocument(id, doc)
		if err := s.adopt(ctx, id, doc); err != nil {
			return err
		}
		s.review(ctx, id)
		return nil
	})
}

// guarded runs f and keeps a panic about one schedule from stopping the others: the schedule is
// disabled, and its history says so.
func (s *Scheduler) guarded(id store.ConnectionID, f func()) {
	defer func() {
		if p := recover(); p != nil {
			s.poison(id, p)
		}
	}()
	f()
}

// poison disables a schedule whose evaluation failed.
func (s *Scheduler) poison(id store.ConnectionID, with any) {
	defer func() {
		if p := recover(); p != nil { // it is not due again before the next start
			s.log.Error("schedule is not run", "connection", id, "panic", p)
			s.plans.planAt(id, time.Time{})
		}
	}()
	s.log.Error("schedule disabled itself", "connection", id, "panic", with)
	now := s.now().UTC()
	said := s.gates.failedTick(id, "schedule_poisoned", now)
	_, err := s.documents.change(s.ctx, id, func(d *document) ([]store.Write, error) {
		d.Definition.Enabled, d.Poisoned, d.LastError = false, true, "schedule_poisoned"
		d.Slot, d.DueAt = time.Time{}, time.Time{}
		return s.record(s.ctx, id, said)
	})
	if err != nil && !errors.As(err, new(*host.Refusal)) {
		s.log.Error("schedule is not run", "connection", id, "error", err)
		s.plans.planAt(id, time.Time{})
		return
	}
	s.done(said)
}

// loop is the only goroutine that waits. It sleeps until something is due, checks the clock at
// least every 30 s, and is woken by changes.
func (s *Scheduler) loop() {
	wall, began := s.now().Round(0), time.Now()
	for {
		now, passed := s.now().Round(0), time.Since(began)
		if d := now.Sub(wall) - passed; d > clockJump || d < -clockJump {
			s.log.Warn("the clock jumped; all schedules are looked at again", "by", d)
			s.reviewAll()
		}
		wall, began = now, time.Now()
		timer := time.NewTimer(s.fireDue(now))
		select {
		case <-s.stopping:
			timer.Stop()
			return
		case <-s.plans.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// fireDue starts what is due and returns the time until more is due.
func (s *Scheduler) fireDue(now time.Time) time.Duration {
	due, wait := s.plans.take(now, s.look)
	for _, id := range due {
		s.work.Go(func() { s.fire(id) })
	}
	return wait
}

// fire dispatches a due schedule and follows its run.
func (s *Scheduler) fire(id store.ConnectionID) {
	var o *openTick
	s.guarded(id, func() {
		var err error
		if o, err = s.dispatcher.dispatch(id); err != nil && s.ctx.Err() == nil {
			s.log.Error("due run is put off", "connection", id, "error", err)
			s.plans.planAt(id, s.now().Add(againAfter))
		}
	})
	s.plans.fired(id)
	if o != nil {
		s.guarded(id, func() { s.follower.follow(id, *o) })
	}
}

func (s *Scheduler) reviewAll() {
	for _, id := range s.plans.ids() {
		s.review(s.ctx, id)
	}
}

// review recomputes a due time that was set while the clock was ahead. A schedule that is due
// already stays due.
func (s *Scheduler) review(ctx context.Context, id store.ConnectionID) {
	s.guarded(id, func() {
		_, err := s.documents.change(ctx, id, func(d *document) ([]store.Write, error) {
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
			return nil, s.documents.setDue(d, slot, err)
		})
		if err != nil && !errors.As(err, new(*host.Refusal)) && s.ctx.Err() == nil {
			s.log.Error("schedule was not looked at", "connection", id, "error", err)
		}
	})
}
