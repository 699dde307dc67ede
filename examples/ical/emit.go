package main

import (
	"strconv"

	ical "github.com/emersion/go-ical"
)

func (v *inventory) putCalendar(c *calendar) error {
	k := keyOf("calendar", c.path)
	if !v.Admits(k.String(), c.path) {
		v.pass(k)
		return nil
	}
	row := v.row()
	row.text("id", k.String())
	row.text("path", c.path)
	name := textOf(c.props, ical.PropName)
	if name == "" {
		name = textOf(c.props, "X-WR-CALNAME")
	}
	row.textOrNull("name", name)
	description := textOf(c.props, ical.PropDescription)
	if description == "" {
		description = textOf(c.props, "X-WR-CALDESC")
	}
	row.textOrNull("description", description)
	row.textOrNull("time_zone", textOf(c.props, "X-WR-TIMEZONE"))
	row.textOrNull("product", textOf(c.props, ical.PropProductID))
	row.textOrNull("method", lowerOf(c.props, ical.PropMethod))
	row.count("events", c.count)
	return v.put(k, row)
}

// putEvent emits an event. DTSTAMP is left out: many servers write the time of
// the export there, and every import would look like a change.
func (v *inventory) putEvent(e *event, s series, set *settings, t *trouble) error {
	start, end := "", ""
	if e.timed {
		start, end = e.start.String(), e.end.String()
	}
	if !v.Admits(e.key.String(), e.calendar) || !v.AdmitsTime(start) {
		v.pass(e.key)
		return nil
	}
	row := v.row()
	row.text("id", e.key.String())
	row.text("uid", e.uid)
	row.textOrNull("recurrence_id", e.replaces)
	row.text("calendar", e.calendar)
	row.textOrNull("summary", textOf(e.props, ical.PropSummary))
	if set.descriptions() {
		row.textOrNull("description", textOf(e.props, ical.PropDescription))
	}
	row.textOrNull("location", textOf(e.props, ical.PropLocation))
	row.textOrNull("url", textOf(e.props, ical.PropURL))
	row.textOrNull("status", lowerOf(e.props, ical.PropStatus))
	row.textOrNull("start", start)
	row.textOrNull("end", end)
	row.flag("all_day", e.timed && e.start.date)
	row.textOrNull("time_zone", e.zoneName())
	row.flag("transparent", lowerOf(e.props, ical.PropTransparency) == "transparent")
	row.textOrNull("visibility", lowerOf(e.props, ical.PropClass))
	v.putPeople(row, e)
	row.texts("categories", listOf(e.props, ical.PropCategories))
	row.textOrNull("rrule", textOf(e.props, ical.PropRecurrenceRule))
	if row.Wants("occurrences") {
		list, err := s.occurrences(e, set.window)
		if err != nil {
			t.event(e, err)
		}
		row.texts("occurrences", list)
	}
	row.count("sequence", e.sequence)
	row.textOrNull("created_at", e.zones.utcTime(e.props, ical.PropCreated))
	row.textOrNull("updated_at", e.updated)
	inline, urls := e.attachments()
	row.texts("attachment_urls", urls)
	return v.putFiles(e, row, inline, t)
}

// putFiles emits an event with its attachments. Only those of an event that changed go to the
// host; where one could not be kept, the next run tries again.
func (v *inventory) putFiles(e *event, row row, inline []ical.Prop, t *trouble) error {
	if !row.Wants("attachments") {
		return v.put(e.key, row)
	}
	changed, err := v.changed(e.key, row, sumOf(inline))
	if err != nil || !changed {
		return err
	}
	files, whole, err := v.attach(e, inline, t)
	if err != nil {
		return err
	}
	if !whole {
		v.now[e.key] = digest{}
	}
	row.any("attachments", files)
	return row.record.Emit(e.key.String())
}

func (e *event) zoneName() string {
	if !e.timed || e.start.zone == nil {
		return ""
	}
	return e.start.zone.name()
}

func (v *inventory) putPeople(row row, e *event) {
	if organizer := organizerOf(e.props); organizer != nil {
		row.any("organizer", organizer)
	} else {
		row.null("organizer")
	}
	row.any("attendees", attendeesOf(e.props))
}

// putAlarms emits the alarms of an event, which are named by their place in it
// unless they have a name of their own.
func (v *inventory) putAlarms(e *event) error {
	seen := map[key]bool{}
	for i, c := range e.alarms {
		k := keyOf("alarm", e.key.String(), textOf(c.Props, ical.PropUID))
		if textOf(c.Props, ical.PropUID) == "" || seen[k] {
			k = keyOf("alarm", e.key.String(), "", strconv.Itoa(i))
		}
		seen[k] = true
		if !v.Admits(k.String(), e.key.String()) {
			v.pass(k)
			continue
		}
		if err := v.putAlarm(k, e, c); err != nil {
			return err
		}
	}
	return nil
}

func (v *inventory) putAlarm(k key, e *event, c *ical.Component) error {
	row := v.row()
	row.text("id", k.String())
	row.text("event_id", e.key.String())
	row.textOrNull("action", lowerOf(c.Props, ical.PropAction))
	offset, related, at := e.trigger(c.Props)
	if related == "" {
		row.null("offset_seconds")
	} else {
		row.count("offset_seconds", offset)
	}
	row.textOrNull("related_to", related)
	row.textOrNull("at", at)
	row.count("repeat", numberOf(c.Props, ical.PropRepeat))
	if d, ok := durationOf(c.Props, ical.PropDuration); ok {
		row.count("repeat_seconds", int(d.Seconds()))
	} else {
		row.null("repeat_seconds")
	}
	row.textOrNull("summary", textOf(c.Props, ical.PropSummary))
	row.textOrNull("description", textOf(c.Props, ical.PropDescription))
	return v.put(k, row)
}

// trigger reads when an alarm goes off: so long from the start or end, or at a
// time.
func (e *event) trigger(props ical.Props) (offset int, related, at string) {
	p := props.Get(ical.PropTrigger)
	if p == nil {
		return 0, "", ""
	}
	if d, ok := durationOf(props, ical.PropTrigger); ok {
		if p.Params.Get(ical.ParamRelated) == "END" {
			return int(d.Seconds()), "end", ""
		}
		return int(d.Seconds()), "start", ""
	}
	if m, err := e.zones.momentOf(p); err == nil && sane(m.clock) {
		return 0, "", m.String()
	}
	return 0, "", ""
}
