package schedule

import (
	"errors"
	"time"

	"github.com/sluicehost/sluice/host"
)

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
