package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Modes of a schedule.
const (
	Automatic = "automatic"
	Manual    = "manual"
	Paused    = "paused"
)

// A Schedule is a definition with its status, as owners see it.
type Schedule struct {
	ConnectionID store.ConnectionID
	Revision     uint64
	Definition

	EffectiveMode          string // automatic, manual or paused
	HumanAttentionNeeded   bool
	IneligibilityReason    string // the gate that would refuse now, "" for none
	LastErrorCode          string
	LastStartedAt          *time.Time
	LastFinishedAt         *time.Time
	LastSuccessfulAt       *time.Time
	NextDueAt              *time.Time
	ActiveRunID            store.RunID
	TicksSkippedOverlap    int64
	MinimumIntervalWarning bool
	SchedulerBackoff       *Backoff
	AutomationMode         string // unattended, assisted or ask_before_run
}

// Backoff is what a streak of failures does to a schedule.
type Backoff struct {
	Applied                bool // the next due time would be skipped
	ConsecutiveFailures    int
	ReasonClass            string
	NextRunAt              *time.Time // nil while it is blocked
	RecommendedHealthState string     // cooling_off or blocked
}

// project is what an owner sees of a schedule, with what the gates would say now.
func (s *Scheduler) project(ctx context.Context, id store.ConnectionID, d document) (Schedule, error) {
	if err := s.observe(ctx, id, &d); err != nil {
		return Schedule{}, err
	}
	out := Schedule{
		ConnectionID: id, Revision: d.Revision, Definition: d.Definition, EffectiveMode: Automatic, LastErrorCode: d.LastError,
		LastStartedAt: since(d.LastStarted), LastFinishedAt: since(d.LastFinished), LastSuccessfulAt: since(d.LastSuccessful),
		NextDueAt: since(d.DueAt), TicksSkippedOverlap: d.Overlaps,
	}
	conn, err := s.d.Source.ScheduledConnection(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		conn, err = Connection{NotReady: "connection_not_found"}, nil
	}
	if err != nil {
		return out, fmt.Errorf("look at connection %s: %w", id, err)
	}
	if out.ActiveRunID, err = s.active(ctx, id); err != nil {
		return out, err
	}
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
	t, err := d.Definition.timetable()
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

// reference is a slot that others are measured from.
func (s *Scheduler) reference(d document) time.Time {
	if !d.Slot.IsZero() {
		return d.Slot
	}
	return s.now()
}

// ineligible is the first gate that would refuse.
func (d document) ineligible(conn Connection, out Schedule, now time.Time) string {
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

func (d document) backoff(t timetable) (*Backoff, error) {
	state := d.Streak.state()
	if state == "" {
		return nil, nil
	}
	until, err := d.Streak.until(t)
	if err != nil {
		return nil, err
	}
	b := &Backoff{Applied: state == Blocked || d.Slot.Before(until), ConsecutiveFailures: d.Streak.Count,
		ReasonClass: d.Streak.Class, RecommendedHealthState: state}
	if state != Blocked {
		b.NextRunAt = since(until)
	}
	return b, nil
}
