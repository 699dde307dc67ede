package main

import (
	"strings"
	"time"
	_ "time/tzdata" // a sandbox has no zone files

	ical "github.com/emersion/go-ical"
)

// A moment is a time as calendars write it: a date, a time in a zone, or a local time
// in whatever zone the reader is. A zone with an unknown name counts as local, too.
type moment struct {
	at    time.Time
	date  bool
	local bool
}

const (
	dateLayout  = "20060102"
	clockLayout = "20060102T150405"
)

// momentOf reads a property; ok is false when there is no time in it.
func momentOf(p *ical.Prop) (m moment, ok bool) {
	if p == nil {
		return moment{}, false
	}
	return parseMoment(strings.TrimSpace(p.Value), p.Params.Get(ical.ParamTimezoneID))
}

func parseMoment(value, tzid string) (m moment, ok bool) {
	if len(value) == len(dateLayout) {
		t, err := time.Parse(dateLayout, value)
		return moment{at: t, date: true}, err == nil && t.Year() > 0
	}
	clock, utc := strings.CutSuffix(value, "Z")
	zone := time.UTC
	local := false
	if !utc {
		if zone = zoneOf(tzid); zone == nil {
			zone, local = time.UTC, true
		}
	}
	t, err := time.ParseInLocation(clockLayout, clock, zone)
	return moment{at: t, local: local}, err == nil && t.Year() > 0
}

// zoneOf knows IANA names, alone or at the end of a path as some programs write
// them.
func zoneOf(tzid string) *time.Location {
	name := strings.Trim(strings.TrimSpace(tzid), `"/`)
	if len(name) > 100 {
		return nil
	}
	for range 4 {
		if z, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
			return z
		}
		_, rest, more := strings.Cut(name, "/")
		if !more {
			return nil
		}
		name = rest
	}
	return nil
}

// plus adds a duration; of a date, whole days.
func (m moment) plus(d time.Duration) moment {
	if m.date {
		m.at = m.at.AddDate(0, 0, int(d/(24*time.Hour)))
		return m
	}
	days := int(d / (24 * time.Hour)) // by the clock; the rest by time passed
	m.at = m.at.AddDate(0, 0, days).Add(d - time.Duration(days)*24*time.Hour)
	return m
}

func (m moment) String() string {
	switch {
	case m.at.Year() > 9999:
		return ""
	case m.date:
		return m.at.Format(time.DateOnly)
	case m.local:
		return m.at.Format("2006-01-02T15:04:05")
	}
	return m.at.Format(time.RFC3339)
}
