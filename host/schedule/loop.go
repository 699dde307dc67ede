package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/store"
)

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
			t, err := d.Definition.timetable()
			if err != nil {
				return nil, err
			}
			slot, err := t.next(now, d.last(t))
			if err == nil && !d.Slot.IsZero() && !slot.Before(d.Slot) {
				return nil, errUnchanged
			}
			return nil, s.due(d, slot, err)
		})
		if err != nil && !errors.As(err, new(*Error)) && s.ctx.Err() == nil {
			s.d.Log.Error("schedule was not looked at", "connection", id, "error", err)
		}
	})
}
