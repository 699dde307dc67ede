package main

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	ical "github.com/emersion/go-ical"
)

const (
	// maxChanges bounds how often the clocks change in a zone.
	maxChanges = 2000
	// lastYear is how far the rules of a defined zone are followed.
	lastYear = 2100
)

// A definedZone is one that a file describes with VTIMEZONE.
type definedZone struct {
	id      string
	changes []clockChange // by clock
}

// A clockChange is when clocks change.
type clockChange struct {
	clock    time.Time // what clocks show just before
	from, to time.Duration
}

// defineZone reads a VTIMEZONE, and returns nil for one that says nothing. One
// that names its IANA zone is that.
func defineZone(c *ical.Component) zone {
	if public := publicZone(textOf(c.Props, "X-LIC-LOCATION")); public != nil {
		return public
	}
	d := &definedZone{id: textOf(c.Props, ical.PropTimezoneID)}
	for _, part := range c.Children {
		if part.Name == "STANDARD" || part.Name == "DAYLIGHT" {
			d.add(part)
		}
	}
	if len(d.changes) == 0 {
		return nil
	}
	slices.SortStableFunc(d.changes, func(a, b clockChange) int { return a.clock.Compare(b.clock) })
	return d
}

// add takes in one observance; one that cannot be read is left out.
func (d *definedZone) add(part *ical.Component) {
	from, ok := offsetOf(part.Props, ical.PropTimezoneOffsetFrom)
	to, ok2 := offsetOf(part.Props, ical.PropTimezoneOffsetTo)
	start := part.Props.Get(ical.PropDateTimeStart)
	if !ok || !ok2 || start == nil {
		return
	}
	none := newZones(nil)
	first, err := none.momentOf(start)
	if err != nil {
		return
	}
	r := recurrence{start: moment{clock: first.clock}, zones: none}
	r.rule, err = parseRule(part.Props, moment{clock: first.clock, zone: fixedZone(from)})
	if err != nil {
		return
	}
	r.addDates(part.Props)
	until := time.Date(lastYear, 1, 1, 0, 0, 0, 0, time.UTC)
	changes, err := r.between(first.clock, until, maxChanges-len(d.changes))
	if err != nil {
		return
	}
	for _, m := range changes {
		d.changes = append(d.changes, clockChange{m.clock, from, to})
	}
}

// offsetOf reads "+0100".
func offsetOf(props ical.Props, name string) (time.Duration, bool) {
	v := textOf(props, name)
	if len(v) != 5 && len(v) != 7 || v[0] != '+' && v[0] != '-' {
		return 0, false
	}
	n, err := strconv.Atoi(v[1:] + strings.Repeat("0", 7-len(v)))
	if err != nil || n < 0 {
		return 0, false
	}
	d := time.Duration(n/10000)*time.Hour + time.Duration(n/100%100)*time.Minute + time.Duration(n%100)*time.Second
	if v[0] == '-' {
		d = -d
	}
	return d, d > -24*time.Hour && d < 24*time.Hour
}

func (d *definedZone) name() string { return d.id }

func (d *definedZone) instant(clock time.Time) time.Time {
	offset := d.changes[0].from
	if i := d.count(func(c clockChange) bool { return !c.clock.After(clock) }); i > 0 {
		c := d.changes[i-1]
		offset = c.to
		if clock.Before(c.clock.Add(c.to - c.from)) { // left out by this change
			offset = c.from
		}
	}
	at := clock.Add(-offset)
	return at.In(time.FixedZone("", int(d.offset(at)/time.Second)))
}

func (d *definedZone) clock(instant time.Time) time.Time {
	return instant.UTC().Add(d.offset(instant))
}

// offset is what clocks are ahead of UTC at an instant.
func (d *definedZone) offset(instant time.Time) time.Duration {
	i := d.count(func(c clockChange) bool { return !c.clock.Add(-c.from).After(instant) })
	if i == 0 {
		return d.changes[0].from
	}
	return d.changes[i-1].to
}

// count returns how many changes there are before the first one that is not
// past.
func (d *definedZone) count(past func(clockChange) bool) int {
	return sort.Search(len(d.changes), func(i int) bool { return !past(d.changes[i]) })
}

// A fixedZone is an offset.
type fixedZone time.Duration

func (z fixedZone) name() string { return "" }

func (z fixedZone) instant(clock time.Time) time.Time {
	return clock.Add(-time.Duration(z)).In(time.FixedZone("", int(time.Duration(z)/time.Second)))
}

func (z fixedZone) clock(instant time.Time) time.Time { return instant.UTC().Add(time.Duration(z)) }
