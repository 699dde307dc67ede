package app

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/store"
)

// schedules implements host.Schedules.
type schedules struct {
	*directory
	clock       *schedule.Scheduler
	runs        *runs
	connections *connectionStore
	snapshots   *snapshots
	checks      *checks
	putOff      sync.Map // connection id to the reason why its scheduled run was postponed
}

var _ host.Schedules = (*schedules)(nil)

// start starts the scheduler. Runs of an earlier host were closed when this one was opened.
func (ss *schedules) start(ctx context.Context) error {
	ss.checks.AddCheck("scheduler", ss.clock.Running)
	return ss.clock.Start(ctx)
}

// scheduleRunner starts scheduled runs and reports the state of connections.
type scheduleRunner struct{ schedules *schedules }

var (
	_ schedule.Starter = scheduleRunner{}
	_ schedule.Source  = scheduleRunner{}
)

// schedulerPrincipal is the principal of automatic runs.
var schedulerPrincipal = host.Principal{ID: "scheduler"}

// StartScheduled implements schedule.Starter. If this host is stopping or has no place for the run, the error is
// not a schedule.Refused and the start is retried.
func (a scheduleRunner) StartScheduled(ctx context.Context, q schedule.Start) (store.Run, error) {
	rec, err := a.schedules.runs.start(host.As(ctx, schedulerPrincipal), host.StartRun{
		WorkflowID: string(q.Connection), Trigger: q.Trigger, Attempt: q.Attempt, RetryOf: q.RetryOf, With: q.With,
		Request: store.Request{CatchUp: q.CatchUp},
	}, branch{automation: q.AutomationMode})
	var no *host.Refusal
	a.schedules.putOff.Delete(q.Connection)
	if errors.As(err, &no) && (no.Code == "unavailable" || no.Code == "rate_limited") {
		a.schedules.putOff.Store(q.Connection, "Put off: "+no.Message+".")
		return rec, err
	}
	if errors.As(err, &no) {
		return rec, &schedule.Refused{Code: startCode(no), Message: no.Message, Err: err}
	}
	return rec, err
}

// startCode returns the code of the check that refused a start, which the API reports in details.code.
func startCode(no *host.Refusal) string {
	if code, ok := no.Details["code"].(string); ok && no.Code == "connection_not_ready" {
		return code
	}
	return no.Code
}

// RecordRefused implements schedule.Starter.
func (a scheduleRunner) RecordRefused(ctx context.Context, q schedule.Start, r *schedule.Refused) (store.Run, error) {
	c, err := a.schedules.Store.Connection(ctx, q.Connection)
	if err != nil {
		return store.Run{}, fmt.Errorf("record refused start of %s: %w", q.Connection, err)
	}
	in := run.Input{
		Connection: c, Connector: store.Connector{ID: c.ConnectorID, Digest: c.Digest}, Trigger: q.Trigger,
		Attempt: q.Attempt, RetryOf: q.RetryOf, AutomationMode: q.AutomationMode, Limits: a.schedules.Options.Limits,
		Budgets: a.schedules.Options.Budgets,
		Request: store.Request{By: schedulerPrincipal.ID, WorkflowID: string(c.ID), CatchUp: q.CatchUp},
	}
	if m, err := abi.ReadManifest(c.Manifest); err == nil {
		in.Manifest = m
	}
	return run.RecordRefusal(ctx, a.schedules.Store, in, a.schedules.ID, a.schedules.Epoch,
		&run.Refusal{Code: r.Code, Message: r.Message}, q.With)
}

// snapshotKey is the key of a snapshot in a context. With it, listing schedules takes only one snapshot.
type snapshotKey struct{}

// ScheduledConnection implements schedule.Source.
func (a scheduleRunner) ScheduledConnection(ctx context.Context, id store.ConnectionID) (schedule.Connection, error) {
	c, err := a.schedules.connections.permanent(ctx, id)
	if err != nil {
		return schedule.Connection{}, err
	}
	v, ok := ctx.Value(snapshotKey{}).(*snapshot)
	if !ok {
		if v, err = a.schedules.snapshots.take(ctx); err != nil {
			return schedule.Connection{}, err
		}
	}
	out := schedule.Connection{ConnectorID: c.ConnectorID, Grant: c.Grant}
	if m, err := abi.ReadManifest(c.Manifest); err == nil {
		out.Policy = schedule.ReadPolicy(m.RefreshPolicy)
	} else if k, listed := v.connectorOf(c); listed {
		if m := v.manifest(k); m != nil {
			out.Policy = schedule.ReadPolicy(m.RefreshPolicy)
		}
	}
	fault := c.Grant.Fault(store.Now(a.schedules.Store))
	for _, code := range v.notReady(ctx, c) {
		if code != "run_already_active" && code != fault { // the scheduler checks those itself
			out.NotReady = code
			break
		}
	}
	return out, nil
}

// PutSchedule implements host.Schedules.
func (ss *schedules) PutSchedule(ctx context.Context, id store.ConnectionID, d host.ScheduleDefinition,
	revision *uint64) (out host.Schedule, created bool, err error) {
	err = ss.record(ctx, audit.ScheduleChanged, id, func() error {
		out, created, err = ss.clock.Put(ctx, id, d, revision)
		out.HeldUp = ss.heldUp(out)
		return err
	})
	return out, created, err
}

// Schedule implements host.Schedules.
func (ss *schedules) Schedule(ctx context.Context, id store.ConnectionID) (host.Schedule, error) {
	one, err := ss.clock.Schedule(ctx, id)
	one.HeldUp = ss.heldUp(one)
	return one, err
}

// Schedules implements host.Schedules.
func (ss *schedules) Schedules(ctx context.Context) ([]host.Schedule, error) {
	v, err := ss.snapshots.take(ctx)
	if err != nil {
		return nil, err
	}
	all, err := ss.clock.Schedules(context.WithValue(ctx, snapshotKey{}, v))
	for i := range all {
		all[i].HeldUp = ss.heldUp(all[i])
	}
	return all, err
}

// PauseSchedule implements host.Schedules.
func (ss *schedules) PauseSchedule(ctx context.Context, id store.ConnectionID) (host.Schedule, error) {
	return ss.switched(ctx, id, ss.clock.Pause, "paused")
}

// ResumeSchedule implements host.Schedules.
func (ss *schedules) ResumeSchedule(ctx context.Context, id store.ConnectionID) (host.Schedule, error) {
	return ss.switched(ctx, id, ss.clock.Resume, "resumed")
}

func (ss *schedules) switched(ctx context.Context, id store.ConnectionID,
	to func(context.Context, store.ConnectionID) (host.Schedule, bool, error),
	code string) (out host.Schedule, err error) {
	err = ss.record(ctx, audit.ScheduleChanged, id, func() error {
		changed := false
		out, changed, err = to(ctx, id)
		if out.HeldUp = ss.heldUp(out); err == nil && !changed {
			return errNoChange
		}
		return err
	}, audit.Code(code))
	if errors.Is(err, errNoChange) {
		err = nil
	}
	return out, err
}

// errNoChange is returned if the schedule was in that state already, so that the audit log gets no entry.
var errNoChange = errors.New("no change")

// DeleteSchedule implements host.Schedules.
func (ss *schedules) DeleteSchedule(ctx context.Context, id store.ConnectionID) error {
	ss.putOff.Delete(id)
	return ss.record(ctx, audit.ScheduleDeleted, id, func() error { return ss.clock.Delete(ctx, id) })
}

// ScheduleHistory implements host.Schedules.
func (ss *schedules) ScheduleHistory(ctx context.Context, id store.ConnectionID, before string,
	limit int) ([]host.Tick, string, error) {
	if _, err := ss.connections.permanent(ctx, id); err != nil {
		return nil, "", err
	}
	return ss.clock.History(ctx, id, before, limit)
}

// ScheduleStatistics implements host.Schedules.
func (ss *schedules) ScheduleStatistics(ctx context.Context, id store.ConnectionID) (host.Statistics, error) {
	if _, err := ss.connections.permanent(ctx, id); err != nil {
		return host.Statistics{}, err
	}
	return ss.clock.Statistics(ctx, id)
}

// record makes a change and records it in the audit log. A refused change leaves no entry.
func (ss *schedules) record(ctx context.Context, action audit.Action, id store.ConnectionID, change func() error,
	details ...audit.Detail) error {
	e := by(ctx, audit.Event{Action: action, Target: string(id), Outcome: audit.Done, Details: details})
	return ss.audited(e, change)
}

// heldUp returns what keeps the scheduled run from starting or from making progress.
func (ss *schedules) heldUp(one host.Schedule) string {
	if one.ActiveRunID != "" {
		live, _ := ss.runs.LiveRun(store.RunID(one.ActiveRunID))
		return live.HeldUp
	}
	if one.EffectiveMode != schedule.Automatic || one.NextDueAt == nil || one.NextDueAt.After(store.Now(ss.Store)) {
		return ""
	}
	why, _ := ss.putOff.Load(store.ConnectionID(one.ConnectionID))
	text, _ := why.(string)
	return text
}
