package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Put creates or replaces the schedule of a connection. If revision is not nil it must equal the
// current revision, 0 if there is no schedule; otherwise Put fails with precondition_failed. Other
// refusals are schedule_invalid and schedule_ineligible; store.ErrNotFound if there is no such
// connection.
func (s *Scheduler) Put(ctx context.Context, id store.ConnectionID, q host.ScheduleDefinition,
	revision *uint64) (out host.Schedule, created bool, err error) {
	now := s.now()
	def, err := define(q, now, s.shortest)
	if err != nil {
		return out, false, err
	}
	conn, err := s.source.ScheduledConnection(ctx, id)
	if err != nil {
		return out, false, err
	}
	if reason := conn.Policy.Refuses(); reason != "" && def.Enabled {
		return out, false, ineligible(reason, "Its connector is to be run by hand only; it cannot be scheduled.")
	}
	if def.Enabled && singleUse(conn.Grant) {
		return out, false, errSingleUse
	}
	d, err := s.replace(ctx, id, def, revision)
	if err != nil {
		return out, false, err
	}
	out, err = s.project(ctx, id, d)
	return out, d.Revision == 1, err
}

// singleUse reports whether a grant is for a single run, which no schedule should consume. An
// existing schedule continues as its gates decide.
func singleUse(g *store.Grant) bool { return g != nil && g.AccessMode == "single_use" }

var errSingleUse = ineligible("single_use_grant",
	"Its grant is for a single run; approve a continuous one to schedule it.")

func (s *Scheduler) replace(ctx context.Context, id store.ConnectionID, def host.ScheduleTerms,
	revision *uint64) (document, error) {
	return s.documents.edit(ctx, id, true, func(d *document) ([]store.Write, error) {
		if revision != nil && *revision != d.Revision {
			return nil, revised(d.Revision)
		}
		if err := s.documents.observe(ctx, id, d); err != nil {
			return nil, err
		}
		d.Definition = def
		d.restart()
		d.Revision++
		return nil, s.documents.restart(d, s.now())
	})
}

// restart clears what kept a schedule from running when it is replaced or resumed.
func (d *document) restart() {
	d.Silent, d.Poisoned = "", false
	if d.Grant != nil {
		g := *d.Grant
		g.Restarted = true
		d.Grant = &g
	}
}

// define checks a request. The error is a *host.Refusal with schedule_invalid and the field. A cron
// expression that does not fire within five years is refused, and so is an interval below shortest.
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
	case q.IntervalSeconds != nil &&
		(*q.IntervalSeconds < int64(shortest/time.Second) || *q.IntervalSeconds > maxInterval):
		return d, invalid("intervalSeconds",
			"An interval is from %d seconds (the setting shortest_interval) to a year (%d seconds).",
			shortest/time.Second, maxInterval)
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

// Bounds and defaults of a definition.
const (
	maxInterval    = 366 * 24 * 60 * 60 // seconds, as for @every
	maxJitter      = 7 * 24 * 60 * 60   // seconds
	maxRetries     = 10
	defaultRetries = 2
)
