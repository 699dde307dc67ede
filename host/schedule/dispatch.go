package schedule

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A dispatcher starts the runs of due ticks, or records why it does not.
type dispatcher struct {
	*lifetime
	store     Store
	starter   Starter
	now       func() time.Time
	done      func(host.Tick)
	documents *documents
	plans     *plans
	gates     *gates
	history   *history
}

// dispatch handles one due time: it ends with the schedule's next due time
// durable, and with what it did in the same commit. The open tick it returns is
// to be followed; nil when no run started.
func (dp *dispatcher) dispatch(id store.ConnectionID) (*open, error) {
	for try := 1; ; try++ {
		o, err := dp.try(id)
		if !errors.As(err, new(*store.ConflictError)) || try == attempts {
			return o, err
		}
	}
}

// try is dispatch until somebody changes the schedule: *store.ConflictError.
func (dp *dispatcher) try(id store.ConnectionID) (*open, error) {
	d, err := dp.documents.load(dp.ctx, id)
	var gone *host.Refusal
	switch {
	case errors.As(err, &gone):
		dp.plans.drop(id)
		return nil, nil
	case errors.Is(err, errUnreadable):
		panic(err)
	case err != nil:
		return nil, err
	}
	now := dp.now()
	if dp.stopped() || !d.Definition.Enabled || d.Poisoned || d.DueAt.IsZero() || d.DueAt.After(now) {
		dp.plans.plan(id, d)
		return nil, nil
	}
	if err := dp.documents.observe(dp.ctx, id, &d); err != nil {
		return nil, err
	}
	if moved, err := dp.moved(&d, now); err != nil || moved {
		return nil, errors.Join(err, dp.save(id, d))
	}
	return dp.decide(id, d, now)
}

// moved: a run that somebody started meanwhile puts off an interval.
func (dp *dispatcher) moved(d *document, now time.Time) (bool, error) {
	t, err := timetableOf(d.Definition)
	if err != nil || t.interval == 0 || d.LastStarted.IsZero() {
		return false, err
	}
	if slot := believed(d.LastStarted, now).Add(t.interval); slot.After(d.Slot) && slot.After(now) {
		return true, dp.documents.due(d, slot, nil)
	}
	return false, nil
}

func (dp *dispatcher) decide(id store.ConnectionID, d document, now time.Time) (*open, error) {
	missed := now.Sub(d.DueAt) > late || d.DueAt.Before(dp.began())
	if missed && !d.Definition.CatchUp {
		return nil, errors.Join(dp.documents.advance(&d, now), dp.save(id, d))
	}
	v, err := dp.gates.judged(id, d, now)
	switch {
	case errors.Is(err, errWedged):
		return nil, dp.wedged(id, d)
	case err != nil:
		return nil, err
	case dp.stopped():
		return nil, nil
	case v.gate != 0:
		return nil, dp.refused(id, d, v, now, missed)
	}
	return dp.begun(id, d, v, now, missed)
}

// refused leaves a slot behind that a gate refused, with a record unless it is
// silent.
func (dp *dispatcher) refused(id store.ConnectionID, d document, v verdict, now time.Time, missed bool) error {
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
	if err := dp.documents.advance(&d, now); err != nil {
		return err
	}
	if silent {
		return dp.save(id, d)
	}
	return dp.saveWith(id, d, v.skip(id, now.UTC(), missed))
}

// wedged abandons a tick whose gates gave no answer.
func (dp *dispatcher) wedged(id store.ConnectionID, d document) error {
	now := dp.now()
	t := dp.gates.failed(id, errWedged.Error(), now.UTC())
	d.Streak, d.LastError = d.Streak.after(t, d.Slot), errWedged.Error()
	if err := dp.documents.advance(&d, now); err != nil {
		return err
	}
	return dp.saveWith(id, d, t)
}

// begun starts the run of a tick; the schedule moves on in the same commit.
func (dp *dispatcher) begun(id store.ConnectionID, d document, v verdict, now time.Time, missed bool) (*open, error) {
	at := d.Slot
	if missed {
		at = now.UTC()
	}
	after := d
	after.Silent, after.Grant = "", nil
	after.LastStarted = now.UTC()
	if err := dp.documents.advance(&after, now); err != nil {
		return nil, err
	}
	start := Start{Connection: id, Trigger: "scheduled", Attempt: 1, CatchUp: missed, AutomationMode: v.conn.Policy.Automation()}
	start.With = func(r store.Run) []store.Write {
		after.startedAt(r)
		after.Open = &open{RunID: r.ID, Attempt: 1, At: at, CatchUp: missed}
		return []store.Write{after.write(id)}
	}
	run, err := dp.starter.StartScheduled(dp.ctx, start)
	var no *Refused
	switch {
	case errors.As(err, &no) && no.Code == "run_already_active":
		return nil, dp.refused(id, d, v.refuse(gateActive, "", ""), now, missed)
	case errors.As(err, &no) && grantCode(no.Code):
		v.reason = no.Code
		return nil, dp.refused(id, d, v.refuse(gateGrant, no.Code, no.Code+" grant no longer usable"), now, missed)
	case errors.As(err, &no):
		run, err = dp.starter.RecordRefused(dp.ctx, start, no)
	}
	if err != nil {
		return nil, fmt.Errorf("start run of %s: %w", id, err)
	}
	after.stored++
	dp.plans.plan(id, after)
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

// save writes a schedule as it was loaded and changed; *store.ConflictError when
// somebody else did too.
func (dp *dispatcher) save(id store.ConnectionID, d document) error {
	if err := dp.store.Write(dp.ctx, d.write(id)); err != nil {
		return fmt.Errorf("save schedule of %s: %w", id, err)
	}
	d.stored++
	dp.plans.plan(id, d)
	return nil
}

// saveWith adds a history record in the same commit.
func (dp *dispatcher) saveWith(id store.ConnectionID, d document, t host.Tick) error {
	with, err := dp.history.record(dp.ctx, id, t)
	if err != nil {
		return err
	}
	if err := dp.store.Write(dp.ctx, append(with, d.write(id))...); err != nil {
		return fmt.Errorf("save schedule of %s: %w", id, err)
	}
	d.stored++
	dp.plans.plan(id, d)
	dp.done(t)
	return nil
}
