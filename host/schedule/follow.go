package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/store"
)

// follow waits for the run of an open tick, tries again what may be tried again,
// and records the tick when its outcome is final. It returns
// early, with the tick open, when the scheduler stops before the run ends.
func (s *Scheduler) follow(id store.ConnectionID, o open) {
	for {
		run, res, err := s.ended(&o)
		var next *open
		if err == nil {
			next, err = s.again(id, o, run, res)
		}
		switch {
		case next != nil:
			o = *next
			continue
		case errors.Is(err, errLater):
			return
		case errors.Is(err, store.ErrNotFound):
			err = s.drop(id, o) // the connection was erased
		case err == nil:
			err = s.finish(id, o, run, res)
		}
		if err == nil || s.ctx.Err() != nil {
			return
		}
		s.d.Log.Error("tick is followed again", "connection", id, "run", o.RunID, "error", err)
		if !s.sleep(againAfter) {
			return
		}
	}
}

// ended waits until a run is over. Meanwhile it heeds its questions.
func (s *Scheduler) ended(o *open) (store.Run, result, error) {
	wake, stop := s.d.Store.Watch(o.RunID)
	defer stop()
	for {
		run, err := s.d.Store.Run(s.ctx, o.RunID)
		if err != nil {
			return run, result{}, fmt.Errorf("read run %s: %w", o.RunID, err)
		}
		if err := s.heed(s.ctx, run, o); err != nil {
			return run, result{}, err
		}
		if run.Status != "active" {
			res, err := resultOf(run)
			return run, res, err
		}
		select {
		case <-wake:
		case <-s.ctx.Done():
			return run, result{}, s.ctx.Err()
		}
	}
}

// errLater: the tick stays open, for the next start of the host.
var errLater = errors.New("the host is stopping")

// again waits as long as the table of §22.6 says and starts another attempt. nil
// when there is to be none: then the last failure stands. errLater for a
// run that ended only because this host does.
func (s *Scheduler) again(id store.ConnectionID, o open, run store.Run, res result) (*open, error) {
	d, err := s.load(s.ctx, id)
	if errors.As(err, new(*Error)) || errors.Is(err, errUnreadable) {
		return nil, nil
	}
	if err != nil || !res.retryable() || int64(o.Attempt) > d.Definition.MaxRetries || !d.Definition.Enabled {
		return nil, err
	}
	if s.stopped() && res.reason() == "controller_restarted" {
		return nil, errLater
	}
	if s.stopped() || !s.sleep(retryWait(o.Attempt)) {
		return nil, nil
	}
	return s.retry(id, o, run)
}

// sleep reports whether the scheduler still starts runs after a while.
func (s *Scheduler) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !s.stopped()
	case <-s.stopping:
		return false
	case <-s.ctx.Done():
		return false
	}
}

// retry starts the next attempt as a run of its own. nil when it may not
// start: then the last failure stands.
func (s *Scheduler) retry(id store.ConnectionID, o open, failed store.Run) (*open, error) {
	conn, err := s.d.Source.ScheduledConnection(s.ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at connection %s: %w", id, err)
	}
	for try := 1; ; try++ {
		d, err := s.load(s.ctx, id)
		if errors.As(err, new(*Error)) || errors.Is(err, errUnreadable) {
			return nil, nil // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		if s.stopped() || !d.Definition.Enabled || d.Poisoned || d.Open == nil || d.Open.RunID != failed.ID {
			return nil, nil // paused, replaced or recorded meanwhile
		}
		next, err := s.attempt(id, d, o, failed, conn.Policy.Automation())
		var conflict *store.ConflictError
		if errors.As(err, &conflict) && try < attempts {
			continue
		}
		return next, err
	}
}

func (s *Scheduler) attempt(id store.ConnectionID, d document, o open, failed store.Run, mode string) (*open, error) {
	o.Attempt++
	o.Read = 0
	start := Start{Connection: id, Trigger: "retry", Attempt: o.Attempt, RetryOf: failed.ID, CatchUp: o.CatchUp, AutomationMode: mode}
	start.With = func(r store.Run) []store.Write {
		o.RunID = r.ID
		d.startedAt(r)
		d.Open = &o
		return []store.Write{d.write(id)}
	}
	_, err := s.d.Starter.StartScheduled(s.ctx, start)
	var no *Refused
	switch {
	case errors.As(err, &no) && no.Code == "run_already_active":
		return nil, nil
	case errors.As(err, &no) && grantCode(no.Code):
		return nil, s.disable(id, no.Code)
	case errors.As(err, &no):
		_, err = s.d.Starter.RecordRefused(s.ctx, start, no)
	}
	if err != nil {
		return nil, fmt.Errorf("start attempt %d of %s: %w", o.Attempt, id, err)
	}
	s.d.Changed(id)
	return &o, nil
}

// disable notes that a grant refused a run; the next due time says so.
func (s *Scheduler) disable(id store.ConnectionID, reason string) error {
	_, err := s.change(s.ctx, id, func(d *document) ([]store.Write, error) {
		d.Grant = &disabled{Reason: reason}
		return nil, nil
	})
	return err
}

// finish records a tick whose outcome is final, once. Its schedule may be
// gone by then, or another one be in its place; the record stays.
func (s *Scheduler) finish(id store.ConnectionID, o open, run store.Run, res result) error {
	t, err := tickOf(run, res)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := s.close(id, o, run, res, t)
		var conflict *store.ConflictError
		switch {
		case err == nil:
			s.d.Done(t)
			return nil
		case errors.Is(err, errRecorded):
			return nil
		case !errors.As(err, &conflict) || try == attempts:
			return err
		}
	}
}

// errRecorded: an attempt to write the record that seemed to fail had not.
var errRecorded = errors.New("recorded already")

func (s *Scheduler) close(id store.ConnectionID, o open, run store.Run, res result, t Tick) error {
	d, err := s.load(s.ctx, id)
	here := err == nil && d.Open != nil && d.Open.RunID == o.RunID
	if err != nil && !errors.As(err, new(*Error)) && !errors.Is(err, errUnreadable) {
		return err
	}
	if !here {
		if done, err := s.recorded(s.ctx, id, run.ID); err != nil || done {
			return cmp.Or(err, errRecorded)
		}
	}
	writes, err := s.record(s.ctx, id, t)
	if err != nil {
		return err
	}
	if here {
		d.Open = nil
		d.finished(run)
		d.Streak = d.Streak.after(t, o.At)
		if grantCode(res.reason()) {
			d.Grant = &disabled{Reason: res.reason()}
		}
		writes = append(writes, d.write(id))
	}
	if err := s.d.Store.Write(s.ctx, writes...); err != nil {
		return fmt.Errorf("record tick of %s: %w", id, err)
	}
	if here {
		d.stored++
		s.plan(id, d)
	}
	return nil
}

// drop forgets an open tick whose run nobody has any more.
func (s *Scheduler) drop(id store.ConnectionID, o open) error {
	_, err := s.change(s.ctx, id, func(d *document) ([]store.Write, error) {
		if d.Open == nil || d.Open.RunID != o.RunID {
			return nil, errUnchanged
		}
		d.Open = nil
		return nil, nil
	})
	if errors.As(err, new(*Error)) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
