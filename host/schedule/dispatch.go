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
	hosts     Hosts
}

// dispatch handles one due time. What it did and the next due time are one commit. The returned
// open tick has to be followed; it is nil if no run started.
func (dp *dispatcher) dispatch(id store.ConnectionID) (*openTick, error) {
	for try := 1; ; try++ {
		o, err := dp.tryOnce(id)
		if !errors.As(err, new(*store.ConflictError)) || try == attempts {
			return o, err
		}
	}
}

// tryOnce makes one attempt of dispatch. It fails with *store.ConflictError if the schedule is
// changed meanwhile.
func (dp *dispatcher) tryOnce(id store.ConnectionID) (*openTick, error) {
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
		dp.plans.planDocument(id, d)
		return nil, nil
	}
	if wait, err := dp.hosts.Turn(dp.ctx, id, d.DueAt); err != nil || wait > 0 {
		dp.plans.planAt(id, now.Add(wait))
		return nil, err
	}
	if err := dp.documents.observe(dp.ctx, id, &d); err != nil {
		return nil, err
	}
	if moved, err := dp.movedOn(&d, now); err != nil || moved {
		return nil, errors.Join(err, dp.save(id, d))
	}
	return dp.decide(id, d, now)
}

// movedOn advances the slot of an interval if a run was started in another way meanwhile, and
// reports whether it did.
func (dp *dispatcher) movedOn(d *document, now time.Time) (bool, error) {
	t, err := timetableOf(d.Definition)
	if err != nil || t.interval == 0 || d.LastStarted.IsZero() {
		return false, err
	}
	if slot := believed(d.LastStarted, now).Add(t.interval); slot.After(d.Slot) && slot.After(now) {
		return true, dp.documents.setDue(d, slot, nil)
	}
	return false, nil
}

func (dp *dispatcher) decide(id store.ConnectionID, d document, now time.Time) (*openTick, error) {
	missed := now.Sub(d.DueAt) > missedAfter || d.DueAt.Before(dp.startedAt()) && dp.hosts == Hosts(alone{})
	if missed && !d.Definition.CatchUp {
		return nil, errors.Join(dp.documents.advance(&d, now), dp.save(id, d))
	}
	v, err := dp.gates.judgeWithin(id, d, now)
	switch {
	case errors.Is(err, errWedged):
		return nil, dp.recordWedged(id, d)
	case err != nil:
		return nil, err
	case dp.stopped():
		return nil, nil
	case v.gate != 0:
		return nil, dp.skip(id, d, v, now, missed)
	}
	return dp.start(id, d, v, now, missed)
}

// skip advances the schedule after a gate refused the slot. It adds a history record unless the
// previous skip had the same cause.
func (dp *dispatcher) skip(id store.ConnectionID, d document, v verdict, now time.Time, missed bool) error {
	silent := false
	switch v.gate {
	case gateConsumed: // recorded for every due tick
		d.Silent = ""
	case gateActive:
		d.Overlaps++
		silent = true
	case gateGrant:
		silent = d.Grant != nil && d.Grant.Said && !d.Grant.Restarted
		d.Grant, d.Silent = &grantFault{Reason: v.reason, Said: true}, ""
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

// recordWedged records as failed a tick whose gates did not answer in time.
func (dp *dispatcher) recordWedged(id store.ConnectionID, d document) error {
	now := dp.now()
	t := dp.gates.failedTick(id, errWedged.Error(), now.UTC())
	d.Streak, d.LastError = d.Streak.after(t, d.Slot), errWedged.Error()
	if err := dp.documents.advance(&d, now); err != nil {
		return err
	}
	return dp.saveWith(id, d, t)
}

// start starts the run of a tick and advances the schedule in the same commit.
func (dp *dispatcher) start(id store.ConnectionID, d document, v verdict, now time.Time,
	missed bool) (*openTick, error) {
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
	start := Start{Connection: id, Trigger: "scheduled", Attempt: 1, CatchUp: missed,
		AutomationMode: v.conn.Policy.Automation()}
	start.With = func(r store.Run) []store.Write {
		after.startedAt(r)
		after.Open = &openTick{RunID: r.ID, Attempt: 1, At: at, CatchUp: missed, Host: dp.hosts.Self()}
		return []store.Write{after.write(id)}
	}
	run, err := dp.starter.StartScheduled(dp.ctx, start)
	var no *Refused
	switch {
	case errors.As(err, &no) && no.Code == "run_already_active":
		return nil, dp.skip(id, d, v.refuse(gateActive, "", ""), now, missed)
	case errors.As(err, &no) && grantCode(no.Code):
		v.reason = no.Code
		return nil, dp.skip(id, d, v.refuse(gateGrant, no.Code, no.Code+" grant no longer usable"), now, missed)
	case errors.As(err, &no):
		run, err = dp.starter.RecordRefused(dp.ctx, start, no)
	}
	if err != nil {
		return nil, fmt.Errorf("start run of %s: %w", id, err)
	}
	after.stored++
	dp.plans.planDocument(id, after)
	return &openTick{RunID: run.ID, Attempt: 1, At: at, CatchUp: missed, Host: dp.hosts.Self()}, nil
}

// startedAt bases an interval on the start of its run, keeping the jitter that was drawn.
func (d *document) startedAt(r store.Run) {
	d.LastStarted = r.StartedAt.UTC()
	if n := d.Definition.IntervalSeconds; n > 0 {
		jitter := d.DueAt.Sub(d.Slot)
		d.Slot = d.LastStarted.Add(time.Duration(n) * time.Second)
		d.DueAt = d.Slot.Add(jitter)
	}
}

// save writes a changed schedule. It fails with *store.ConflictError if it was changed since it was
// loaded.
func (dp *dispatcher) save(id store.ConnectionID, d document) error {
	if err := dp.store.Write(dp.ctx, d.write(id)); err != nil {
		return fmt.Errorf("save schedule of %s: %w", id, err)
	}
	d.stored++
	dp.plans.planDocument(id, d)
	return nil
}

// saveWith does the same and adds a history record in the same commit.
func (dp *dispatcher) saveWith(id store.ConnectionID, d document, t host.Tick) error {
	with, err := dp.history.record(dp.ctx, id, t)
	if err != nil {
		return err
	}
	if err := dp.store.Write(dp.ctx, append(with, d.write(id))...); err != nil {
		return fmt.Errorf("save schedule of %s: %w", id, err)
	}
	d.stored++
	dp.plans.planDocument(id, d)
	dp.done(t)
	return nil
}
