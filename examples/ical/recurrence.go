package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	ical "github.com/emersion/go-ical"
	"github.com/teambition/rrule-go"
)

const (
	// maxSteps bounds how many repetitions of one event are counted through.
	maxSteps = 300_000
	maxDates = 5000 // of RDATE or EXDATE
	// anyZone is more than clocks anywhere differ from UTC.
	anyZone = 48 * time.Hour
)

var errRule = errors.New("the rule of its repetitions is not supported")

// A recurrence is when an event takes place: its start, what its rule yields,
// dates that are added and dates that are left out.
type recurrence struct {
	zones *zones
	start moment
	rule  *rrule.ROption // nil: no rule
	extra []time.Time    // RDATE, by the clock of start
	not   map[int64]bool // EXDATE, as seconds of that clock
}

// recurrenceOf reads the repetitions of an event. ok is false for an event that
// takes place once.
func (z *zones) recurrenceOf(props ical.Props, start moment) (r recurrence, ok bool, err error) {
	r = recurrence{start: start, zones: z}
	if r.rule, err = parseRule(props, start); err != nil {
		return r, false, err
	}
	r.addDates(props)
	return r, r.rule != nil || len(r.extra) > 0, nil
}

// parseRule reads RRULE. Its times are put on the clock of start, by which the
// repetitions are counted.
func parseRule(props ical.Props, start moment) (*rrule.ROption, error) {
	p := props.Get(ical.PropRecurrenceRule)
	if p == nil {
		return nil, nil
	}
	var parts []string
	until := ""
	for part := range strings.SplitSeq(strings.ToUpper(strings.Trim(strings.TrimSpace(p.Value), ";")), ";") {
		if v, isUntil := strings.CutPrefix(part, "UNTIL="); isUntil {
			until = v
			continue
		}
		if !strings.HasPrefix(part, "X-") {
			parts = append(parts, part)
		}
	}
	o, err := rrule.StrToROption(strings.Join(parts, ";"))
	if err != nil {
		return nil, fmt.Errorf("%w: %v", errRule, err)
	}
	if until != "" {
		if o.Until, err = untilOf(until, start); err != nil {
			return nil, fmt.Errorf("%w: %v", errRule, err)
		}
	}
	o.Dtstart = start.clock
	return o, countable(o)
}

// untilOf reads UNTIL: in UTC, a date, or local to start.
func untilOf(value string, start moment) (time.Time, error) {
	m, err := newZones(nil).parseMoment(value, "")
	if err != nil {
		return time.Time{}, err
	}
	if m.date && !start.date {
		return m.clock.Add(24*time.Hour - time.Second), nil // that day included
	}
	return m.in(start), nil
}

// countable refuses rules that make the counter run for ages: steps of minutes
// or seconds, and steps of hours or days on dates that may never come, over
// which rrule-go does not stop.
func countable(o *rrule.ROption) error {
	filtered := len(o.Bymonth)+len(o.Bymonthday)+len(o.Byyearday)+len(o.Byweekno)+len(o.Byweekday)+len(o.Bysetpos) > 0
	switch {
	case o.Freq == rrule.MINUTELY || o.Freq == rrule.SECONDLY:
		return fmt.Errorf("%w: it repeats by the minute", errRule)
	case o.Freq == rrule.HOURLY && (filtered || len(o.Byhour) > 0):
		return fmt.Errorf("%w: it repeats by the hour, but not in each", errRule)
	case o.Interval > 10_000:
		return fmt.Errorf("%w: its interval is too long", errRule)
	case len(o.Byeaster) > 0:
		return fmt.Errorf("%w: it counts from Easter, which is no part of the standard", errRule)
	case longLists(o):
		return fmt.Errorf("%w: its lists are too long", errRule)
	}
	if _, err := rrule.NewRRule(*o); err != nil {
		return fmt.Errorf("%w: %v", errRule, err)
	}
	if neverComes(o.Bymonth, o.Bymonthday) {
		return fmt.Errorf("%w: no month has such a day", errRule)
	}
	return nil
}

// longLists reports whether the lists of a rule are too long to compute; longer ones
// can only repeat values.
func longLists(o *rrule.ROption) bool {
	for _, n := range []int{len(o.Bysetpos), len(o.Bymonth), len(o.Bymonthday), len(o.Byyearday),
		len(o.Byweekno), len(o.Byweekday)} {
		if n > 2*366 {
			return true
		}
	}
	return (1+len(o.Byhour))*(1+len(o.Byminute))*(1+len(o.Bysecond)) > 10_000
}

// neverComes reports whether none of the months, 1 to 12, has any of the days.
func neverComes(months, days []int) bool {
	if len(months) == 0 || len(days) == 0 {
		return false
	}
	longest := 0
	for _, m := range months {
		longest = max(longest, [...]int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[m-1])
	}
	for _, d := range days {
		if max(d, -d) <= longest {
			return false
		}
	}
	return true
}

// addDates reads RDATE and EXDATE; what cannot be read of them is left out.
func (r *recurrence) addDates(props ical.Props) {
	r.extra = r.dates(props.Values(ical.PropRecurrenceDates))
	r.not = map[int64]bool{}
	for _, t := range r.dates(props.Values(ical.PropExceptionDates)) {
		r.not[t.Unix()] = true
	}
}

func (r *recurrence) dates(props []ical.Prop) []time.Time {
	var times []time.Time
	for _, p := range props {
		for value := range strings.SplitSeq(p.Value, ",") {
			value, _, _ = strings.Cut(strings.TrimSpace(value), "/") // a period counts from its start
			m, err := r.zones.parseMoment(value, p.Params.Get(ical.ParamTimezoneID))
			if err != nil || len(times) == maxDates {
				continue
			}
			times = append(times, r.onClock(m))
		}
	}
	return times
}

// onClock puts a moment on the clock of start. A date for an event with a time
// means the repetition on that day.
func (r *recurrence) onClock(m moment) time.Time {
	if m.date && !r.start.date {
		day, clock := m.clock, r.start.clock
		return time.Date(day.Year(), day.Month(), day.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, time.UTC)
	}
	return m.in(r.start)
}

// between returns the repetitions from since on and before until, at most limit, in
// order. The start counts as one whatever the rule says. A rule that cannot be computed
// is an error, returned with the repetitions that need no rule.
func (r *recurrence) between(since, until time.Time, limit int) ([]moment, error) {
	var clocks []time.Time
	early, late := since.Add(-anyZone), until.Add(anyZone)
	add := func(t time.Time) {
		if t.Before(early) || t.After(late) {
			return // instants cost more than all the rest
		}
		if at := r.start.at(t).instant(); !r.not[t.Unix()] && !at.Before(since) && at.Before(until) {
			clocks = append(clocks, t)
		}
	}
	add(r.start.clock)
	for _, t := range r.extra {
		add(t)
	}
	err := r.count(until, limit+len(clocks), func(t time.Time) int { add(t); return len(clocks) })
	slices.SortFunc(clocks, time.Time.Compare)
	clocks = slices.CompactFunc(clocks, time.Time.Equal)
	out := make([]moment, 0, min(len(clocks), max(limit, 0)))
	for _, t := range clocks[:min(len(clocks), max(limit, 0))] {
		out = append(out, r.start.at(t))
	}
	return out, err
}

// count goes through what the rule yields. rrule-go panics on some rules that
// pass its own checks.
func (r *recurrence) count(until time.Time, limit int, add func(time.Time) (found int)) (err error) {
	if r.rule == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = errRule
		}
	}()
	last := until.Add(anyZone)
	option := *r.rule
	if option.Until.IsZero() { // rrule-go's own end is 290 years after the start
		option.Until = last
	}
	rule, err := rrule.NewRRule(option)
	if err != nil {
		return fmt.Errorf("%w: %v", errRule, err)
	}
	next := rule.Iterator()
	for range maxSteps {
		t, ok := next()
		if !ok || t.After(last) || add(t) > limit {
			return nil
		}
	}
	return fmt.Errorf("%w: there are too many of them before the window", errRule)
}
