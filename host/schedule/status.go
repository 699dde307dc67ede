package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// project returns a schedule for its owner, with the gate that would refuse it now.
func (s *Scheduler) project(ctx context.Context, id store.ConnectionID, d document) (host.Schedule, error) {
	if err := s.documents.observe(ctx, id, &d); err != nil {
		return host.Schedule{}, err
	}
	out := host.Schedule{
		ConnectionID: string(id), Revision: d.Revision, ScheduleTerms: d.Definition, EffectiveMode: Automatic,
		LastErrorCode: d.LastError, LastStartedAt: timeOrNil(d.LastStarted), LastFinishedAt: timeOrNil(d.LastFinished),
		LastSuccessfulAt: timeOrNil(d.LastSuccessful), NextDueAt: timeOrNil(d.DueAt), TicksSkippedOverlap: d.Overlaps,
	}
	conn, err := s.source.ScheduledConnection(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		conn, err = Connection{NotReady: "connection_not_found"}, nil
	}
	if err != nil {
		return out, fmt.Errorf("look at connection %s: %w", id, err)
	}
	active, err := s.documents.active(ctx, id)
	if err != nil {
		return out, err
	}
	out.ActiveRunID = string(active)
	if out.HumanAttentionNeeded, err = s.NeedsAttention(ctx, id); err != nil {
		return out, err
	}
	switch {
	case !d.Definition.Enabled || d.Poisoned:
		out.EffectiveMode = Paused
	case d.unusable(conn.Grant, s.now()) != "": // it cannot run until its owner decides again
		out.EffectiveMode = Paused
	case conn.Policy.Refuses() != "":
		out.EffectiveMode = Manual
	}
	out.AutomationMode = conn.Policy.Automation()
	if conn.NotReady != "" || out.HumanAttentionNeeded {
		out.AutomationMode = AskBeforeRun
	}
	t, err := timetableOf(d.Definition)
	if err != nil || d.Poisoned {
		out.IneligibilityReason = "schedule_poisoned"
		return out, nil
	}
	if distance, err := t.distance(s.reference(d)); err == nil {
		out.MinimumIntervalWarning = distance < conn.Policy.MinimumInterval
	}
	if out.SchedulerBackoff, err = d.backoff(t); err != nil {
		return out, err
	}
	out.IneligibilityReason = d.ineligible(conn, out, s.now())
	return out, nil
}

// reference returns a slot to measure others from.
func (s *Scheduler) reference(d document) time.Time {
	if !d.Slot.IsZero() {
		return d.Slot
	}
	return s.now()
}

// ineligible returns the first gate that would refuse.
func (d document) ineligible(conn Connection, out host.Schedule, now time.Time) string {
	switch {
	case d.unusable(conn.Grant, now) != "":
		return d.unusable(conn.Grant, now)
	case out.HumanAttentionNeeded:
		return "needs_human_attention"
	case conn.Policy.Refuses() != "":
		return conn.Policy.Refuses()
	case conn.NotReady != "":
		return conn.NotReady
	case out.SchedulerBackoff != nil && out.SchedulerBackoff.Applied:
		return out.SchedulerBackoff.RecommendedHealthState
	}
	return ""
}

func (d document) backoff(t timetable) (*host.Backoff, error) {
	state := d.Streak.state()
	if state == "" {
		return nil, nil
	}
	until, err := d.Streak.until(t)
	if err != nil {
		return nil, err
	}
	b := &host.Backoff{Applied: state == Blocked || d.Slot.Before(until), ConsecutiveFailures: d.Streak.Count,
		ReasonClass: d.Streak.Class, RecommendedHealthState: state}
	if state != Blocked {
		b.NextRunAt = timeOrNil(until)
	}
	return b, nil
}

// failedTick returns the record of a tick that failed in the scheduler itself.
func (gs *gates) failedTick(id store.ConnectionID, code string, now time.Time) host.Tick {
	message := map[string]string{
		"scheduler_dispatch_wedged": "the checks before the run took longer than " + gs.limit.String(),
		"schedule_poisoned":         "evaluating this schedule failed; it is paused until the owner resumes it",
	}[code]
	return host.Tick{
		Status: "failed", ConnectionID: string(id), StartedAt: now, CompletedAt: now, RecordsEmitted: new(int64),
		FailureReason: code, Error: strings.Join([]string{code, message}, ": "), TriggerKind: "scheduled",
	}
}

// Modes of a schedule.
const (
	Automatic = "automatic"
	Manual    = "manual"
	Paused    = "paused"
)
