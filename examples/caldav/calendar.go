package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	ical "github.com/emersion/go-ical"
)

// putCalendarObject emits the event or task that an object is. A series is one
// record; repetitions that were changed are in its exceptions.
func (c *collector) putCalendarObject(ctx context.Context, o *object, data []byte) (marks, error) {
	cal, err := parseCalendar(data)
	if err != nil {
		return 0, &badObject{err}
	}
	var now marks
	for _, s := range c.holds {
		component, recordOf := ical.CompEvent, eventRecord
		if s.name == "todos" {
			component, recordOf = ical.CompToDo, todoRecord
		}
		var all []*ical.Component
		for _, child := range cal.Children {
			if child.Name == component {
				all = append(all, child)
			}
		}
		if len(all) == 0 {
			continue
		}
		r, at := recordOf(o, series(all))
		if !s.Admits(o.key.String(), o.in.path) || !s.AdmitsTime(at) {
			now |= o.old.marks & s.mark // what an earlier scope had stays
			continue
		}
		if err := c.attach(ctx, s, o, r, all); err != nil {
			return 0, err
		}
		if err := s.put(o.key, r); err != nil {
			return 0, err
		}
		now |= s.mark
	}
	return now, nil
}

// parseCalendar reads one VCALENDAR. go-ical panics on some lines that end too
// soon.
func parseCalendar(data []byte) (cal *ical.Calendar, err error) {
	defer func() {
		if p := recover(); p != nil {
			cal, err = nil, errors.New("a line of it ends too soon")
		}
	}()
	lines, _ := unfolded(data)
	cal, err = ical.NewDecoder(strings.NewReader(strings.Join(lines, "\n") + "\n")).Decode()
	if err != nil {
		return nil, fmt.Errorf("it is no calendar object: %w", err)
	}
	return cal, nil
}

// series puts the component that stands for all before the repetitions that
// replace one.
func series(all []*ical.Component) []*ical.Component {
	for i, c := range all {
		if c.Props.Get(ical.PropRecurrenceID) == nil {
			all[0], all[i] = all[i], all[0]
			break
		}
	}
	return all
}

func eventRecord(o *object, all []*ical.Component) (r record, start string) {
	p := all[0].Props
	r = common(o, p)
	from, to := span(p)
	m, timed := momentOf(p.Get(ical.PropDateTimeStart))
	r["start"], r["end"], r["all_day"] = text(from), text(to), timed && m.date
	r["transparent"] = lowerOf(p, ical.PropTransparency) == "transparent"
	r["organizer"] = organizerOf(p)
	r["attendees"] = attendeesOf(p)
	exceptions := []map[string]any{}
	for _, c := range all[1:] {
		if len(exceptions) == maxList {
			break
		}
		instead, _ := momentOf(c.Props.Get(ical.PropRecurrenceID))
		start, end := span(c.Props)
		exceptions = append(exceptions,
			map[string]any{"recurrence_id": instead.String(), "start": text(start), "end": text(end),
				"summary": text(textOf(c.Props, ical.PropSummary)), "location": text(textOf(c.Props, ical.PropLocation)),
				"status": text(lowerOf(c.Props, ical.PropStatus))})
	}
	r["exceptions"] = exceptions
	return r, from
}

func todoRecord(o *object, all []*ical.Component) (r record, due string) {
	p := all[0].Props
	r = common(o, p)
	if m, ok := momentOf(p.Get(ical.PropDue)); ok {
		due = m.String()
	} else if m, ok := momentOf(p.Get(ical.PropDateTimeStart)); ok && p.Get(ical.PropDuration) != nil {
		due = m.plus(durationOf(p)).String()
	}
	r["start"], r["due"], r["completed_at"] = timeOf(p, ical.PropDateTimeStart), text(due), timeOf(p, ical.PropCompleted)
	r["priority"], r["percent_complete"] = numberOf(p, ical.PropPriority), numberOf(p, ical.PropPercentComplete)
	return r, due
}

// common are the members that events and tasks share.
func common(o *object, p ical.Props) record {
	zone := ""
	if start := p.Get(ical.PropDateTimeStart); start != nil {
		zone = clean(start.Params.Get(ical.ParamTimezoneID))
	}
	var replaces any
	if m, ok := momentOf(p.Get(ical.PropRecurrenceID)); ok {
		replaces = m.String()
	}
	return record{
		"id": o.key.String(), "calendar": o.in.path, "path": o.path, "uid": textOf(p, ical.PropUID),
		"recurrence_id": replaces, "summary": text(textOf(p, ical.PropSummary)),
		"description": text(textOf(p, ical.PropDescription)), "location": text(textOf(p, ical.PropLocation)),
		"url": text(textOf(p, ical.PropURL)), "status": text(lowerOf(p, ical.PropStatus)),
		"visibility": text(lowerOf(p, ical.PropClass)), "categories": listOf(p, ical.PropCategories), "time_zone": text(zone),
		"rrule": text(textOf(p, ical.PropRecurrenceRule)), "rdates": times(p, ical.PropRecurrenceDates),
		"exdates": times(p, ical.PropExceptionDates), "sequence": numberOf(p, ical.PropSequence),
		"created_at": timeOf(p, ical.PropCreated), "updated_at": timeOf(p, ical.PropLastModified),
	}
}

// span is when an event begins and ends.
func span(p ical.Props) (start, end string) {
	from, ok := momentOf(p.Get(ical.PropDateTimeStart))
	if !ok {
		return "", ""
	}
	to, ok := momentOf(p.Get(ical.PropDateTimeEnd))
	switch {
	case ok:
	case p.Get(ical.PropDuration) != nil:
		to = from.plus(durationOf(p))
	case from.date:
		to = from.plus(24 * time.Hour)
	default:
		to = from
	}
	return from.String(), to.String()
}

// longest bounds durations: no event takes longer.
const longest = 100 * 366 * 24 * time.Hour

func durationOf(p ical.Props) time.Duration {
	d, err := p.Get(ical.PropDuration).Duration()
	if err != nil || d < 0 || d > longest {
		return 0
	}
	return d
}

// times are the dates and times of a property that may have several.
func times(p ical.Props, name string) []string {
	out := []string{}
	for _, prop := range p.Values(name) {
		for _, one := range strings.Split(prop.Value, ",") {
			one, _, _ = strings.Cut(strings.TrimSpace(one), "/") // of a period, its start
			if m, ok := parseMoment(one, prop.Params.Get(ical.ParamTimezoneID)); ok && len(out) < maxList {
				out = append(out, m.String())
			}
		}
	}
	return out
}

// timeOf is a time as text, or null.
func timeOf(p ical.Props, name string) any {
	m, ok := momentOf(p.Get(name))
	if !ok {
		return nil
	}
	return text(m.String())
}

// textOf returns a text property, unescaped; "" when there is none.
func textOf(p ical.Props, name string) string {
	prop := p.Get(name)
	if prop == nil {
		return ""
	}
	return clean(unescape(prop.Value))
}

func lowerOf(p ical.Props, name string) string { return strings.ToLower(textOf(p, name)) }

func numberOf(p ical.Props, name string) int {
	n, err := strconv.Atoi(textOf(p, name))
	if err != nil || n < 0 || n > 1<<31 {
		return 0
	}
	return n
}

// listOf returns the texts of a property that may occur more than once, each a
// list.
func listOf(p ical.Props, name string) []string {
	list := []string{}
	for _, prop := range p.Values(name) {
		for _, item := range split(prop.Value, ',') {
			if item = clean(unescape(item)); item != "" && len(list) < maxList {
				list = append(list, item)
			}
		}
	}
	return list
}
