package main

import (
	"errors"
	"strings"
	"time"

	ical "github.com/emersion/go-ical"
)

// A moment is a time as calendars write it: a date, a time in a zone, or a local time
// in whatever zone the reader is. The clock is what a wall clock shows, stored as UTC;
// repetitions are computed on it, and only the result becomes an instant. So no step of
// the computation can fall into a change of clocks.
type moment struct {
	clock time.Time
	date  bool
	zone  zone // nil: a date, or local
}

var errBadTime = errors.New("no date or time")

const (
	dateLayout  = "20060102"
	clockLayout = "20060102T150405"
)

// momentOf reads a property. zones resolves TZID.
func (z *zones) momentOf(p *ical.Prop) (moment, error) {
	return z.parseMoment(strings.TrimSpace(p.Value), p.Params.Get(ical.ParamTimezoneID))
}

func (z *zones) parseMoment(value, tzid string) (moment, error) {
	if len(value) == len(dateLayout) {
		t, err := time.Parse(dateLayout, value)
		if err != nil {
			return moment{}, errBadTime
		}
		return moment{clock: t, date: true}, nil
	}
	local, utc := strings.CutSuffix(value, "Z")
	t, err := time.Parse(clockLayout, local)
	if err != nil {
		return moment{}, errBadTime
	}
	if utc {
		return moment{clock: t, zone: utcZone{}}, nil
	}
	if tzid == "" {
		return moment{clock: t}, nil
	}
	return moment{clock: t, zone: z.find(tzid)}, nil
}

// at is the same kind of moment at another time of the clock.
func (m moment) at(clock time.Time) moment {
	m.clock = clock
	return m
}

// instant is the moment as a point in time: a date is its midnight, and a local
// time counts as UTC, as the scope's time range has it.
func (m moment) instant() time.Time {
	if m.zone == nil {
		return m.clock
	}
	return m.zone.instant(m.clock)
}

// in is the clock of a moment in the zone of another. Dates and local times have
// no zone to leave.
func (m moment) in(other moment) time.Time {
	if m.zone == nil || other.zone == nil {
		return m.clock
	}
	return other.zone.clock(m.instant())
}

func (m moment) String() string {
	switch {
	case m.date:
		return m.clock.Format(time.DateOnly)
	case m.zone == nil:
		return m.clock.Format("2006-01-02T15:04:05")
	default:
		return m.instant().Format(time.RFC3339)
	}
}

// plus adds a duration. Whole days go by the clock, the rest by time passed, so
// that "one day later" is the same hour although the clocks changed.
func (m moment) plus(d time.Duration) moment {
	days := d / (24 * time.Hour)
	m.clock = m.clock.AddDate(0, 0, int(days))
	rest := d - days*24*time.Hour
	if rest == 0 || m.zone == nil {
		return m.at(m.clock.Add(rest))
	}
	return m.at(m.zone.clock(m.instant().Add(rest)))
}

// utcTime reads a property that is always in UTC, such as CREATED, as text.
func (z *zones) utcTime(props ical.Props, name string) string {
	p := props.Get(name)
	if p == nil {
		return ""
	}
	m, err := z.momentOf(p)
	if err != nil || m.clock.Year() < 1 {
		return ""
	}
	return m.instant().UTC().Format(time.RFC3339)
}
