package schedule

import (
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
)

// A timetable is a definition prepared for evaluation.
type timetable struct {
	expression Expression
	zone       *time.Location
	interval   time.Duration // 0 for a cron expression
}

func timetableOf(d host.ScheduleTerms) (timetable, error) {
	if d.Cron == "" {
		return timetable{interval: time.Duration(d.IntervalSeconds) * time.Second}, nil
	}
	e, err := Parse(d.Cron)
	if err != nil {
		return timetable{}, err
	}
	zone, err := LoadZone(d.Timezone)
	return timetable{expression: e, zone: zone}, err
}

// bogus bounds how far in the future a recorded instant may lie. Beyond it the clock was wrong when
// the instant was recorded, and it is ignored. A clock that is set back by less never repeats a
// slot.
const bogus = 7 * 24 * time.Hour

func believed(t, now time.Time) time.Time {
	if t.After(now.Add(bogus)) {
		return time.Time{}
	}
	return t
}

// next returns the slot that follows the last one: strictly after now, and after what was
// dispatched already. last is the last slot or start, zero if there was none. An interval and
// @every stay on their grid, so a skipped tick does not shift later ones.
func (t timetable) next(now, last time.Time) (time.Time, error) {
	last = believed(last, now)
	step := t.interval
	if step == 0 {
		step = t.expression.every
	}
	switch {
	case step > 0 && last.IsZero():
		return now.Add(step), nil
	case step > 0:
		if behind := now.Sub(last); behind >= 0 {
			step *= behind/step + 1
		}
		return last.Add(step), nil
	case last.After(now):
		return t.expression.Next(last, t.zone)
	}
	return t.expression.Next(now, t.zone)
}

// first returns the slot of a schedule that begins now, or again: an interval is due at once unless
// a run started less than an interval ago.
func (t timetable) first(now, last time.Time) (time.Time, error) {
	if t.interval == 0 {
		return t.next(now, last)
	}
	if last = believed(last, now); last.IsZero() || last.Add(t.interval).Before(now) {
		return now, nil
	}
	return last.Add(t.interval), nil
}

// distance returns the time between a slot and the next one: the base of the back-off, and what is
// compared with the manifest's least interval.
func (t timetable) distance(from time.Time) (time.Duration, error) {
	next, err := t.next(from, from)
	return next.Sub(from), err
}

// Next returns the first instant after t at which the expression fires in a zone, in UTC, or
// ErrNever if there is none within five years.
func (e Expression) Next(t time.Time, zone *time.Location) (time.Time, error) {
	switch {
	case e.every > 0:
		return e.ask(t.UTC())
	case e.fixed:
		return e.nextFixed(t, zone)
	}
	return e.nextElapsed(t, zone)
}

// nextFixed goes from match to match on the wall clock. A match that occurs twice has passed at its
// first occurrence, so the next may lie before t.
func (e Expression) nextFixed(t time.Time, zone *time.Location) (time.Time, error) {
	wall := relabel(t, zone)
	for {
		var err error
		if wall, err = e.ask(wall); err != nil {
			return time.Time{}, err
		}
		if at := firstAt(wall, zone); at.After(t) {
			return at, nil
		}
	}
}

// nextElapsed evaluates within each stretch of constant offset; the next stretch
// begins one second before the change, as the clock reads after it.
func (e Expression) nextElapsed(t time.Time, zone *time.Location) (time.Time, error) {
	local := t.In(zone)
	offset := offsetOf(local)
	wall := t.UTC().Add(offset)
	for {
		match, err := e.ask(wall)
		if err != nil {
			return time.Time{}, err
		}
		_, end := local.ZoneBounds()
		if next := match.Add(-offset); end.IsZero() || next.Before(end) {
			return next, nil
		}
		local = end.In(zone)
		offset = offsetOf(local)
		wall = end.UTC().Add(offset - time.Second)
	}
}

// relabel returns the wall clock of a zone at t, called UTC.
func relabel(t time.Time, zone *time.Location) time.Time {
	local := t.In(zone)
	return t.UTC().Add(offsetOf(local))
}

func offsetOf(local time.Time) time.Duration {
	_, seconds := local.Zone()
	return time.Duration(seconds) * time.Second
}

// reach is longer than any clock is from UTC: Samoa was at -11 and is at +14.
const reach = 27 * time.Hour

// firstAt returns the first instant at which the clock of a zone shows wall, or the
// first after the gap that swallowed it.
func firstAt(wall time.Time, zone *time.Location) time.Time {
	at := wall.Add(-reach).In(zone)
	for {
		start, end := at.ZoneBounds()
		candidate := wall.Add(-offsetOf(at))
		if !start.IsZero() && candidate.Before(start) {
			candidate = start
		}
		if end.IsZero() || candidate.Before(end) {
			return candidate.UTC()
		}
		at = end.In(zone)
	}
}

// loaded are zones by name, which are read from files. There are some 600.
var loaded sync.Map

// maxZone is longer than the name of any zone.
const maxZone = 64

// LoadZone returns the zone of an IANA name; "" is UTC. The host's own zone has
// no name.
func LoadZone(name string) (*time.Location, error) {
	bad := strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("_+-/", c)
	})
	if bad || len(name) > maxZone || name == "Local" {
		return nil, invalid("timezone", "That is no IANA time zone; one looks like Europe/Berlin.")
	}
	if zone, ok := loaded.Load(name); ok {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, invalid("timezone", "There is no time zone of this name; one looks like Europe/Berlin.")
	}
	loaded.Store(name, zone)
	return zone, nil
}
