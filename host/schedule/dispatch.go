package schedule

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// dispatch handles one due time: it ends with the schedule's next due time
// durable, and with what it did in the same commit. The open tick it returns is
// to be followed; nil when no run started.
func (s *Scheduler) dispatch(id store.ConnectionID) (*open, error) {
	for try := 1; ; try++ {
		o, err := s.try(id)
		if !errors.As(err, new(*store.ConflictError)) || try == attempts {
			return o, err
		}
	}
}

// try is dispatch until somebody changes the schedule: *store.ConflictError.
func (s *Scheduler) try(id store.ConnectionID) (*open, error) {
	d, err := s.load(s.ctx, id)
	var gone *host.Refusal
	switch {
	case errors.As(err, &gone):
		s.unplan(id)
		return nil, nil
	case errors.Is(err, errUnreadable):
		panic(err)
	case err != nil:
		return nil, err
	}
	now := s.now()
	if s.stopped() || !d.Definition.Enabled || d.Poisoned || d.DueAt.IsZero() || d.DueAt.After(now) {
		s.plan(id, d)
		return nil, nil
	}
	if err := s.observe(s.ctx, id, &d); err != nil {
		return nil, err
	}
	if moved, err := s.moved(&d, now); err != nil || moved {
		return nil, errors.Join(err, s.save(id, d))
	}
	return s.decide(id, d, now)
}

// moved: a run that somebody started meanwhile puts off an interval.
func (s *Scheduler) moved(d *document, now time.Time) (bool, error) {
	t, err := timetableOf(d.Definition)
	if err != nil || t.interval == 0 || d.LastStarted.IsZero() {
		return false, err
	}
	if slot := believed(d.LastStarted, now).Add(t.interval); slot.After(d.Slot) && slot.After(now) {
		return true, s.due(d, slot, nil)
	}
	return false, nil
}

func (s *Scheduler) decide(id store.ConnectionID, d document, now time.Time) (*open, error) {
	missed := now.Sub(d.DueAt) > late || d.DueAt.Before(s.began())
	if missed && !d.Definition.CatchUp {
		return nil, errors.Join(s.advance(&d, now), s.save(id, d))
	}
	v, err := s.judged(id, d, now)
	switch {
	case errors.Is(err, errWedged):
		return nil, s.wedged(id, d)
	case err != nil:
		return nil, err
	case s.stopped():
		return nil, nil
	case v.gate != 0:
		return nil, s.refused(id, d, v, now, missed)
	}
	return s.begun(id, d, v, now, missed)
}

// refused leaves a slot behind that a gate refused, with a record unless it is
// silent.
func (s *Scheduler) refused(id store.ConnectionID, d document, v verdict, now time.Time, missed bool) error {
	silent := false
	switch v.gate {
	case gateConsumed: // every due tick says so
		d.Silent = ""
	case gateActive:
		d.Overlaps++
		silent = true
	case gateGrant:
		silent = d.Grant != nil && d.Grant.Said && !d.Grant.Restarted
		d.Grant, d.Silent = &disabled{Reason: v.reason, Said: true}, ""
	default:
		silent, d.Silent = d.Silent == v.cause, v.cause
	}
	if err := s.advance(&d, now); err != nil {
		return err
	}
	if silent {
		return s.save(id, d)
	}
	return s.saveWith(id, d, v.skip(id, now.UTC(), missed))
}

// wedged abandons a tick whose gates gave no answer.
func (s *Scheduler) wedged(id store.ConnectionID, d document) error {
	now := s.now()
	t := s.failed(id, errWedged.Error(), now.UTC())
	d.Streak, d.LastError = d.Streak.after(t, d.Slot), errWedged.Error()
	if err := s.advance(&d, now); err != nil {
		return err
	}
	return s.saveWith(id, d, t)
}

// begun starts the run of a tick; the schedule moves on in the same commit.
func (s *Scheduler) begun(id store.ConnectionID, d document, v verdict, now time.Time, missed bool) (*open, error) {
	at := d.Slot
	if missed {
		at = now.UTC()
	}
	after := d
	after.Silent, after.Grant = "", nil
	after.LastStarted = now.UTC()
	if err := s.advance(&after, now); err != nil {
		return nil, err
	}
	start := Start{Connection: id, Trigger: "scheduled", Attempt: 1, CatchUp: missed, AutomationMode: v.conn.Policy.Automation()}
	start.With = func(r store.Run) []store.Write {
		after.startedAt(r)
		after.Open = &open{RunID: r.ID, Attempt: 1, At: at, CatchUp: missed}
		return []store.Write{after.write(id)}
	}
	run, err := s.d.Starter.StartScheduled(s.ctx, start)
	var no *Refused
	switch {
	case errors.As(err, &no) && no.Code == "run_already_active":
		return nil, s.refused(id, d, v.refuse(gateActive, "", ""), now, missed)
	case errors.As(err, &no) && grantCode(no.Code):
		v.reason = no.Code
		return nil, s.refused(id, d, v.refuse(gateGrant, no.Code, no.Code+" grant no longer usable"), now, missed)
	case errors.As(err, &no):
		run, err = s.d.Starter.RecordRefused(s.ctx, start, no)
	}
	if err != nil {
		return nil, fmt.Errorf("start run of %s: %w", id, err)
	}
	after.stored++
	s.plan(id, after)
	return &open{RunID: run.ID, Attempt: 1, At: at, CatchUp: missed}, nil
}

// startedAt moves an interval to the start of its run, with the jitter that
// was drawn.
func (d *document) startedAt(r store.Run) {
	d.LastStarted = r.StartedAt.UTC()
	if n := d.Definition.IntervalSeconds; n > 0 {
		jitter := d.DueAt.Sub(d.Slot)
		d.Slot = d.LastStarted.Add(time.Duration(n) * time.Second)
		d.DueAt = d.Slot.Add(jitter)
	}
}

func (s *Scheduler) began() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// save writes a schedule as it was loaded and changed; *store.ConflictError when
// somebody else did too.
func (s *Scheduler) save(id store.ConnectionID, d document) error {
	if err := s.d.Store.Write(s.ctx, d.write(id)); err != nil {
		return fmt.Errorf("save schedule of %s: %w", id, err)
	}
	d.stored++
	s.plan(id, d)
	return nil
}

// saveWith adds a history record in the same commit.
func (s *Scheduler) saveWith(id store.ConnectionID, d document, t host.Tick) error {
	with, err := s.record(s.ctx, id, t)
	if err != nil {
		return err
	}
	if err := s.d.Store.Write(s.ctx, append(with, d.write(id))...); err != nil {
		return fmt.Errorf("save schedule of %s: %w", id, err)
	}
	d.stored++
	s.plan(id, d)
	s.d.Done(t)
	return nil
}
