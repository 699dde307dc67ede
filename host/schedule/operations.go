package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Put creates the schedule of a connection or replaces it. revision, when
// not nil, is the one that it must have, 0 for none: precondition_failed.
// schedule_invalid, schedule_ineligible; store.ErrNotFound without a connection.
func (s *Scheduler) Put(ctx context.Context, id store.ConnectionID, q host.ScheduleDefinition, revision *uint64) (out host.Schedule, created bool, err error) {
	now := s.now()
	def, err := define(q, now, s.d.Shortest)
	if err != nil {
		return out, false, err
	}
	conn, err := s.d.Source.ScheduledConnection(ctx, id)
	if err != nil {
		return out, false, err
	}
	if reason := conn.Policy.Refuses(); reason != "" && def.Enabled {
		return out, false, ineligible(reason, "Its connector is to be run by hand only; it cannot be scheduled.")
	}
	if def.Enabled && once(conn.Grant) {
		return out, false, errOnce
	}
	d, err := s.replace(ctx, id, def, revision)
	if err != nil {
		return out, false, err
	}
	out, err = s.project(ctx, id, d)
	return out, d.Revision == 1, err
}

// once is a grant for a single run: nothing that a clock should use up. A
// schedule that was there before the grant goes on as its gates say.
func once(g *store.Grant) bool { return g != nil && g.AccessMode == "single_use" }

var errOnce = ineligible("single_use_grant", "Its grant is for a single run; approve a continuous one to schedule it.")

func (s *Scheduler) replace(ctx context.Context, id store.ConnectionID, def host.ScheduleTerms, revision *uint64) (document, error) {
	return s.edit(ctx, id, true, func(d *document) ([]store.Write, error) {
		if revision != nil && *revision != d.Revision {
			return nil, revised(d.Revision)
		}
		if err := s.observe(ctx, id, d); err != nil {
			return nil, err
		}
		d.Definition = def
		d.restart()
		d.Revision++
		return nil, s.begin(d, s.now())
	})
}

// restart is what replacing and resuming do to a schedule besides.
func (d *document) restart() {
	d.Silent, d.Poisoned = "", false
	if d.Grant != nil {
		g := *d.Grant
		g.Restarted = true
		d.Grant = &g
	}
}

// Schedule returns the schedule of a connection; schedule_not_found.
func (s *Scheduler) Schedule(ctx context.Context, id store.ConnectionID) (host.Schedule, error) {
	d, err := s.load(ctx, id)
	if err != nil && !errors.Is(err, errUnreadable) {
		return host.Schedule{}, err
	}
	return s.project(ctx, id, d)
}

// Schedules lists all, in the order of their connections.
func (s *Scheduler) Schedules(ctx context.Context) ([]host.Schedule, error) {
	out := []host.Schedule{}
	err := s.each(ctx, func(doc store.Document) error {
		d, err := decode(doc)
		if err != nil && !errors.Is(err, errUnreadable) {
			return err
		}
		one, err := s.project(ctx, store.ConnectionID(doc.ID), d)
		out = append(out, one)
		return err
	})
	return out, err
}

// Pause stops its ticks, and a retry that waits; a run is not touched.
// changed is false when it was paused already.
func (s *Scheduler) Pause(ctx context.Context, id store.ConnectionID) (out host.Schedule, changed bool, err error) {
	d, err := s.change(ctx, id, func(d *document) ([]store.Write, error) {
		if changed = d.Definition.Enabled; !changed {
			return nil, errUnchanged
		}
		d.Definition.Enabled = false
		d.Revision++
		return nil, s.begin(d, s.now())
	})
	if err != nil {
		return out, false, err
	}
	out, err = s.project(ctx, id, d)
	return out, changed, err
}

// Resume lets it run again, from now on, and ends a back-off.
// changed is false when there was nothing to resume. schedule_ineligible.
func (s *Scheduler) Resume(ctx context.Context, id store.ConnectionID) (out host.Schedule, changed bool, err error) {
	if conn, err := s.d.Source.ScheduledConnection(ctx, id); err == nil && once(conn.Grant) {
		return out, false, errOnce
	}
	d, err := s.change(ctx, id, func(d *document) ([]store.Write, error) {
		changed = !d.Definition.Enabled || d.Poisoned || d.Streak.state() != "" || d.Grant != nil && !d.Grant.Restarted
		if !changed {
			return nil, errUnchanged
		}
		if d.Definition.Cron == "" && d.Definition.IntervalSeconds == 0 {
			return nil, ineligible("schedule_unreadable", "The stored schedule cannot be read; set it again.")
		}
		began := !d.Definition.Enabled
		d.Definition.Enabled, d.Streak = true, streak{}
		d.restart()
		d.Revision++
		if !began {
			return nil, nil
		}
		if err := s.observe(ctx, id, d); err != nil {
			return nil, err
		}
		return nil, s.begin(d, s.now())
	})
	if err != nil {
		return out, false, err
	}
	out, err = s.project(ctx, id, d)
	return out, changed, err
}

// Restarted notes that the owner approved a grant anew: a schedule that the old
// one had disabled looks again. Without a schedule it does nothing.
func (s *Scheduler) Restarted(ctx context.Context, id store.ConnectionID) error {
	_, err := s.change(ctx, id, func(d *document) ([]store.Write, error) {
		if d.Grant == nil || d.Grant.Restarted {
			return nil, errUnchanged
		}
		d.restart()
		return nil, nil
	})
	if errors.As(err, new(*host.Refusal)) {
		return nil
	}
	return err
}

// Delete removes a schedule; its history and an active run stay.
// schedule_not_found.
func (s *Scheduler) Delete(ctx context.Context, id store.ConnectionID) error {
	if _, err := s.load(ctx, id); err != nil && !errors.Is(err, errUnreadable) {
		return err
	}
	if err := s.d.Store.Write(ctx, store.Write{Kind: store.Schedules, ID: string(id)}); err != nil {
		return fmt.Errorf("delete schedule of %s: %w", id, err)
	}
	s.unplan(id)
	s.d.Changed(id)
	return nil
}

// Bounds and defaults of a definition.
const (
	maxInterval    = 366 * 24 * 60 * 60 // seconds, as for @every
	maxJitter      = 7 * 24 * 60 * 60   // seconds
	maxRetries     = 10
	defaultRetries = 2
)

// define checks a request. The error is a *host.Refusal with schedule_invalid and the
// field; a cron that does not fire after now within five years is refused,
// and an interval below shortest.
func define(q host.ScheduleDefinition, now time.Time, shortest time.Duration) (host.ScheduleTerms, error) {
	d := host.ScheduleTerms{Cron: q.Cron, Timezone: q.Timezone, Enabled: true, CatchUp: true, MaxRetries: defaultRetries}
	if q.Enabled != nil {
		d.Enabled = *q.Enabled
	}
	if q.CatchUp != nil {
		d.CatchUp = *q.CatchUp
	}
	if q.JitterSeconds != nil {
		d.JitterSeconds = *q.JitterSeconds
	}
	if q.MaxRetries != nil {
		d.MaxRetries = *q.MaxRetries
	}
	switch {
	case q.Cron != "" && q.IntervalSeconds != nil:
		return d, invalid("intervalSeconds", "A schedule has a cron expression or an interval, not both.")
	case q.Cron == "" && q.IntervalSeconds == nil:
		return d, invalid("cron", "A schedule wants a cron expression, such as 0 6 * * *, or an interval in seconds.")
	case q.IntervalSeconds != nil && (*q.IntervalSeconds < int64(shortest/time.Second) || *q.IntervalSeconds > maxInterval):
		return d, invalid("intervalSeconds", "An interval is from %d seconds (the setting shortest_interval) to a year (%d seconds).", shortest/time.Second, maxInterval)
	case q.IntervalSeconds != nil && q.Timezone != "":
		return d, invalid("timezone", "An interval has no time zone; use a cron expression.")
	case d.JitterSeconds < 0 || d.JitterSeconds > maxJitter:
		return d, invalid("jitterSeconds", "The jitter is from 0 seconds to a week (%d seconds).", maxJitter)
	case d.MaxRetries < 0 || d.MaxRetries > maxRetries:
		return d, invalid("maxRetries", "A failed run is tried again 0 to %d times.", maxRetries)
	case q.IntervalSeconds != nil:
		d.IntervalSeconds = *q.IntervalSeconds
		return d, nil
	}
	return settleCron(d, now)
}

func settleCron(d host.ScheduleTerms, now time.Time) (host.ScheduleTerms, error) {
	if d.Timezone == "" {
		d.Timezone = "UTC"
	}
	zone, err := LoadZone(d.Timezone)
	if err != nil {
		return d, err
	}
	e, err := Parse(d.Cron)
	if err != nil {
		return d, invalid("cron", "The cron expression is not one: %s.", err)
	}
	d.Cron = e.String()
	switch _, err := e.Next(now, zone); {
	case errors.Is(err, ErrNever):
		return d, invalid("cron", "The cron expression never fires: no date matches it within five years.")
	case err != nil:
		return d, invalid("cron", "The cron expression cannot be evaluated.")
	}
	return d, nil
}

// Modes of a schedule.
const (
	Automatic = "automatic"
	Manual    = "manual"
	Paused    = "paused"
)

// project is what an owner sees of a schedule, with what the gates would say now.
func (s *Scheduler) project(ctx context.Context, id store.ConnectionID, d document) (host.Schedule, error) {
	if err := s.observe(ctx, id, &d); err != nil {
		return host.Schedule{}, err
	}
	out := host.Schedule{
		ConnectionID: string(id), Revision: d.Revision, ScheduleTerms: d.Definition, EffectiveMode: Automatic, LastErrorCode: d.LastError,
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
	active, err := s.active(ctx, id)
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

// reference is a slot that others are measured from.
func (s *Scheduler) reference(d document) time.Time {
	if !d.Slot.IsZero() {
		return d.Slot
	}
	return s.now()
}

// ineligible is the first gate that would refuse.
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
		b.NextRunAt = since(until)
	}
	return b, nil
}

// The codes of refusals.
const (
	CodeInvalid    = "schedule_invalid" // details.field
	CodeNotFound   = "schedule_not_found"
	CodeIneligible = "schedule_ineligible" // details.reason
	CodeRevision   = "precondition_failed" // details.revision
)

func invalid(field, format string, args ...any) *host.Refusal {
	return &host.Refusal{Code: CodeInvalid, Message: fmt.Sprintf(format, args...), Details: map[string]any{"field": field}}
}

func notFound() *host.Refusal {
	return &host.Refusal{Code: CodeNotFound, Message: "This connection has no schedule."}
}

func ineligible(reason, format string, args ...any) *host.Refusal {
	return &host.Refusal{Code: CodeIneligible, Message: fmt.Sprintf(format, args...), Details: map[string]any{"reason": reason}}
}

func revised(revision uint64) *host.Refusal {
	return &host.Refusal{Code: CodeRevision, Message: "The schedule was changed meanwhile; read it again.", Details: map[string]any{"revision": revision}}
}
