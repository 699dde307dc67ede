package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A follower waits for started runs, retries them and records how their ticks ended.
type follower struct {
	*lifetime
	store     Store
	starter   Starter
	source    Source
	done      func(host.Tick)
	log       *slog.Logger
	documents *documents
	plans     *plans
	marks     *marks
	history   *history
}

// follow waits for the run of an open tick, retries it if possible, and records the tick when its
// outcome is final. If the scheduler stops first, it returns with the tick still open.
func (fl *follower) follow(id store.ConnectionID, o openTick) {
	for {
		run, res, err := fl.awaitEnd(&o)
		var next *openTick
		if err == nil {
			next, err = fl.tryAgain(id, o, run, res)
		}
		switch {
		case next != nil:
			o = *next
			continue
		case errors.Is(err, errStopping):
			return
		case errors.Is(err, store.ErrNotFound):
			err = fl.forget(id, o) // the connection was deleted
		case err == nil:
			err = fl.finish(id, o, run, res)
		}
		if err == nil || fl.ctx.Err() != nil {
			return
		}
		fl.log.Error("tick is followed again", "connection", id, "run", o.RunID, "error", err)
		if !fl.sleep(againAfter) {
			return
		}
	}
}

// awaitEnd waits until a run is over. Meanwhile it marks the connection if the run asks something.
func (fl *follower) awaitEnd(o *openTick) (store.Run, result, error) {
	wake, stop := fl.store.Watch(o.RunID)
	defer stop()
	for {
		run, err := fl.store.Run(fl.ctx, o.RunID)
		if err != nil {
			return run, result{}, fmt.Errorf("read run %s: %w", o.RunID, err)
		}
		if err := fl.marks.follow(fl.ctx, run, o); err != nil {
			return run, result{}, err
		}
		if run.Status != "active" {
			res, err := resultOf(run)
			return run, res, err
		}
		select {
		case <-wake:
		case <-time.After(lookEvery): // wake-ups of another host may be lost
		case <-fl.ctx.Done():
			return run, result{}, fl.ctx.Err()
		}
	}
}

// errStopping means that the host is stopping, and the tick stays open for its next start.
var errStopping = errors.New("the host is stopping")

// tryAgain waits and starts another attempt. It returns nil if there is none, so that the failure
// is final, and errStopping for a run that ended only because the host is stopping.
func (fl *follower) tryAgain(id store.ConnectionID, o openTick, run store.Run, res result) (*openTick, error) {
	d, err := fl.documents.load(fl.ctx, id)
	if errors.As(err, new(*host.Refusal)) || errors.Is(err, errUnreadable) {
		return nil, nil
	}
	if err != nil || !res.retryable() || int64(o.Attempt) > d.Definition.MaxRetries || !d.Definition.Enabled {
		return nil, err
	}
	if fl.stopped() && res.reason() == "controller_restarted" {
		return nil, errStopping
	}
	if fl.stopped() || !fl.sleep(retryWait(o.Attempt)) {
		return nil, nil
	}
	return fl.retry(id, o, run)
}

// retry starts the next attempt as a new run. It returns nil if that may not start, so that the
// failure is final.
func (fl *follower) retry(id store.ConnectionID, o openTick, failed store.Run) (*openTick, error) {
	conn, err := fl.source.ScheduledConnection(fl.ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at connection %s: %w", id, err)
	}
	for try := 1; ; try++ {
		d, err := fl.documents.load(fl.ctx, id)
		if errors.As(err, new(*host.Refusal)) || errors.Is(err, errUnreadable) {
			return nil, nil // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		if fl.stopped() || !d.Definition.Enabled || d.Poisoned || d.Open == nil || d.Open.RunID != failed.ID {
			return nil, nil // paused, replaced or recorded meanwhile
		}
		next, err := fl.attempt(id, d, o, failed, conn.Policy.Automation())
		if errors.As(err, new(*store.ConflictError)) && try < attempts {
			continue
		}
		return next, err
	}
}

func (fl *follower) attempt(id store.ConnectionID, d document, o openTick, failed store.Run,
	mode string) (*openTick, error) {
	o.Attempt++
	o.Read = 0
	start := Start{Connection: id, Trigger: "retry", Attempt: o.Attempt, RetryOf: failed.ID, CatchUp: o.CatchUp,
		AutomationMode: mode}
	start.With = func(r store.Run) []store.Write {
		o.RunID = r.ID
		d.startedAt(r)
		d.Open = &o
		return []store.Write{d.write(id)}
	}
	_, err := fl.starter.StartScheduled(fl.ctx, start)
	var no *Refused
	switch {
	case errors.As(err, &no) && no.Code == "run_already_active":
		return nil, nil
	case errors.As(err, &no) && grantCode(no.Code):
		return nil, fl.disable(id, no.Code)
	case errors.As(err, &no):
		_, err = fl.starter.RecordRefused(fl.ctx, start, no)
	}
	if err != nil {
		return nil, fmt.Errorf("start attempt %d of %s: %w", o.Attempt, id, err)
	}
	return &o, nil
}

// disable records that a grant refused a run, which the next due time reports.
func (fl *follower) disable(id store.ConnectionID, reason string) error {
	_, err := fl.documents.change(fl.ctx, id, func(d *document) ([]store.Write, error) {
		d.Grant = &grantFault{Reason: reason}
		return nil, nil
	})
	return err
}

// finish records a tick with a final outcome, once. The record is written even if the schedule is
// deleted or replaced meanwhile.
func (fl *follower) finish(id store.ConnectionID, o openTick, run store.Run, res result) error {
	t, err := tickOf(run, res)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := fl.commit(id, o, run, res, t)
		switch {
		case err == nil:
			fl.done(t)
			return nil
		case errors.Is(err, errRecorded):
			return nil
		case !errors.As(err, new(*store.ConflictError)) || try == attempts:
			return err
		}
	}
}

// errRecorded means that the record exists already, since an earlier write only seemed to fail.
var errRecorded = errors.New("recorded already")

// commit writes the history record and, if the schedule still has this tick open, closes it in the
// same commit.
func (fl *follower) commit(id store.ConnectionID, o openTick, run store.Run, res result, t host.Tick) error {
	d, err := fl.documents.load(fl.ctx, id)
	here := err == nil && d.Open != nil && d.Open.RunID == o.RunID
	if err != nil && !errors.As(err, new(*host.Refusal)) && !errors.Is(err, errUnreadable) {
		return err
	}
	if !here {
		if done, err := fl.history.recorded(fl.ctx, id, run.ID); err != nil || done {
			return cmp.Or(err, errRecorded)
		}
	}
	writes, err := fl.history.record(fl.ctx, id, t)
	if err != nil {
		return err
	}
	if here {
		d.Open = nil
		d.finished(run)
		d.Streak = d.Streak.after(t, o.At)
		if grantCode(res.reason()) {
			d.Grant = &grantFault{Reason: res.reason()}
		}
		writes = append(writes, d.write(id))
	}
	if err := fl.store.Write(fl.ctx, writes...); err != nil {
		return fmt.Errorf("record tick of %s: %w", id, err)
	}
	if here {
		d.stored++
		fl.plans.planDocument(id, d)
	}
	return nil
}

// forget closes an open tick whose run is no longer in the store.
func (fl *follower) forget(id store.ConnectionID, o openTick) error {
	_, err := fl.documents.change(fl.ctx, id, func(d *document) ([]store.Write, error) {
		if d.Open == nil || d.Open.RunID != o.RunID {
			return nil, errUnchanged
		}
		d.Open = nil
		return nil, nil
	})
	if errors.As(err, new(*host.Refusal)) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
