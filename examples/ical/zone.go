package main

import (
	"strings"
	"time"
	_ "time/tzdata" // a sandbox has no zone files

	ical "github.com/emersion/go-ical"
)

// A zone converts what a clock shows, stored as UTC, to an instant, and back. A time
// that a clock shows twice is the first one, and a time that it skips is computed with
// the offset before (RFC 5545 §3.3.5).
type zone interface {
	name() string
	instant(clock time.Time) time.Time
	clock(instant time.Time) time.Time
}

type utcZone struct{}

func (utcZone) name() string                      { return "UTC" }
func (utcZone) instant(clock time.Time) time.Time { return clock }
func (utcZone) clock(instant time.Time) time.Time { return instant.UTC() }

// A namedZone is one of the IANA database.
type namedZone struct{ location *time.Location }

func (z namedZone) name() string { return z.location.String() }

func (z namedZone) instant(clock time.Time) time.Time {
	before := z.offset(clock.Add(-24 * time.Hour))
	at := clock.Add(-before)
	if z.offset(at) == before {
		return at.In(z.location)
	}
	after := z.offset(clock.Add(24 * time.Hour))
	if later := clock.Add(-after); z.offset(later) == after {
		return later.In(z.location)
	}
	return at.In(z.location)
}

func (z namedZone) clock(instant time.Time) time.Time { return instant.UTC().Add(z.offset(instant)) }

func (z namedZone) offset(instant time.Time) time.Duration {
	_, seconds := instant.In(z.location).Zone()
	return time.Duration(seconds) * time.Second
}

// zones resolves the zone names of one calendar.
type zones struct {
	defined map[string]*block // VTIMEZONE, by name
	found   map[string]zone
	unknown []string
}

func newZones(calendar *block) *zones {
	z := &zones{defined: map[string]*block{}, found: map[string]zone{}}
	if calendar == nil {
		return z
	}
	for _, b := range calendar.blocks {
		if b.name == ical.CompTimezone {
			z.defined[b.line(ical.PropTimezoneID)] = b
		}
	}
	return z
}

// find returns a zone, or nil if it is unknown. A well-known name takes precedence over
// the definition in the file, which is mostly cut down to one pair of rules.
func (z *zones) find(tzid string) zone {
	if found, ok := z.found[tzid]; ok {
		return found
	}
	found := publicZone(tzid)
	if b := z.defined[tzid]; found == nil && b != nil {
		if c, err := b.decode(); err == nil {
			found = defineZone(c)
		}
	}
	if found == nil {
		z.unknown = append(z.unknown, tzid)
	}
	z.found[tzid] = found
	return found
}

// publicZone knows IANA names, alone or at the end of a path as some programs
// write them, and those of Windows.
func publicZone(tzid string) zone {
	name := strings.Trim(strings.TrimSpace(tzid), `"`)
	switch strings.ToUpper(name) {
	case "UTC", "GMT", "Z", "ETC/UTC", "COORDINATED UNIVERSAL TIME":
		return utcZone{}
	}
	if iana, ok := windowsZones[name]; ok {
		name = iana
	}
	for range 6 {
		if location, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
			return namedZone{location}
		}
		_, rest, more := strings.Cut(name, "/")
		if !more {
			return nil
		}
		name = rest
	}
	return nil
}
