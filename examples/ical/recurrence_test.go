package main

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

func TestOccurrences(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"weekly over the change of clocks",
			[]string{"DTSTART;TZID=Europe/Berlin:20250323T090000", "RRULE:FREQ=WEEKLY;COUNT=3"},
			[]string{"2025-03-23T09:00:00+01:00", "2025-03-30T09:00:00+02:00", "2025-04-06T09:00:00+02:00"}},
		{"in an hour that is left out",
			[]string{"DTSTART;TZID=Europe/Berlin:20250329T023000", "RRULE:FREQ=DAILY;COUNT=3"},
			[]string{"2025-03-29T02:30:00+01:00", "2025-03-30T03:30:00+02:00", "2025-03-31T02:30:00+02:00"}},
		{"until, in UTC",
			[]string{"DTSTART;TZID=America/New_York:20250101T200000", "RRULE:FREQ=DAILY;UNTIL=20250104T010000Z"},
			[]string{"2025-01-01T20:00:00-05:00", "2025-01-02T20:00:00-05:00", "2025-01-03T20:00:00-05:00"}},
		{"until, a date",
			[]string{"DTSTART;TZID=Europe/Berlin:20250101T200000", "RRULE:FREQ=DAILY;UNTIL=20250102"},
			[]string{"2025-01-01T20:00:00+01:00", "2025-01-02T20:00:00+01:00"}},
		{"all day, left out and added",
			[]string{"DTSTART;VALUE=DATE:20250106", "RRULE:FREQ=WEEKLY;COUNT=4", "EXDATE;VALUE=DATE:20250113,20250120",
				"RDATE;VALUE=DATE:20250115"},
			[]string{"2025-01-06", "2025-01-15", "2025-01-27"}},
		{"left out, given in UTC",
			[]string{"DTSTART;TZID=Europe/Berlin:20250106T090000", "RRULE:FREQ=DAILY;COUNT=3", "EXDATE:20250107T080000Z"},
			[]string{"2025-01-06T09:00:00+01:00", "2025-01-08T09:00:00+01:00"}},
		{"left out, given as a date",
			[]string{"DTSTART;TZID=Europe/Berlin:20250106T090000", "RRULE:FREQ=DAILY;COUNT=2", "EXDATE;VALUE=DATE:20250107"},
			[]string{"2025-01-06T09:00:00+01:00"}},
		{"last working day of the month",
			[]string{"DTSTART:20241231T170000", "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=4"},
			[]string{"2025-01-31T17:00:00", "2025-02-28T17:00:00", "2025-03-31T17:00:00"}},
		{"added dates without a rule, one a period",
			[]string{"DTSTART:20250101T100000Z", "RDATE:20250201T100000Z,20240101T100000Z",
				"RDATE;VALUE=PERIOD:20250301T100000Z/PT1H"},
			[]string{"2025-01-01T10:00:00Z", "2025-02-01T10:00:00Z", "2025-03-01T10:00:00Z"}},
		{"since long ago, one a year",
			[]string{"DTSTART;VALUE=DATE:19520229", "RRULE:FREQ=YEARLY;BYMONTHDAY=-1;BYMONTH=2"}, []string{"2025-02-28"}},
		{"every hour", []string{"DTSTART:20251231T210000Z", "RRULE:FREQ=HOURLY"},
			[]string{"2025-12-31T21:00:00Z", "2025-12-31T22:00:00Z", "2025-12-31T23:00:00Z"}},
		{"the start counts though the rule does not yield it",
			[]string{"DTSTART;VALUE=DATE:20250101", "RRULE:FREQ=WEEKLY;BYDAY=MO;UNTIL=20250110"},
			[]string{"2025-01-01", "2025-01-06"}},
		{"before the window", []string{"DTSTART:20200101T100000Z", "RRULE:FREQ=DAILY;COUNT=5"}, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf(t)
			s.write("a.ics", calendarOf(eventOf(append([]string{"UID:1", "SUMMARY:x"}, c.lines...)...)))
			res := s.collect(guesttest.Options{})
			if diff := cmp.Diff(c.want, texts(events(t, res)["x"]["occurrences"])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(res.Skips) != 0 {
				t.Errorf("skips %+v", res.Skips)
			}
		})
	}
}

// A repetition that was moved or called off is a record of its own, and the
// series shows it.
func TestOverrides(t *testing.T) {
	s := newShelf(t)
	s.write("a.ics", calendarOf(
		eventOf("UID:1", "SUMMARY:series", "DTSTART;TZID=Europe/Berlin:20250106T090000", "RRULE:FREQ=WEEKLY;COUNT=4"),
		eventOf("UID:1", "SUMMARY:moved", "RECURRENCE-ID;TZID=Europe/Berlin:20250113T090000",
			"DTSTART;TZID=Europe/Berlin:20250114T110000"),
		eventOf("UID:1", "SUMMARY:off", "RECURRENCE-ID:20250120T080000Z", "DTSTART:20250120T080000Z", "STATUS:CANCELLED")))
	got := events(t, s.collect(guesttest.Options{}))
	want := []string{"2025-01-06T09:00:00+01:00", "2025-01-14T11:00:00+01:00", "2025-01-27T09:00:00+01:00"}
	if diff := cmp.Diff(want, texts(got["series"]["occurrences"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got["moved"]["recurrence_id"] != "2025-01-13T09:00:00+01:00" || got["moved"]["id"] == got["series"]["id"] ||
		got["moved"]["uid"] != "1" {
		t.Errorf("moved: %v", got["moved"])
	}
}

// Rules that would be counted through for ages are refused, and only they.
func TestRulesRefused(t *testing.T) {
	for _, rule := range []string{"FREQ=SECONDLY", "FREQ=MINUTELY;INTERVAL=30", "FREQ=HOURLY;BYMONTH=2",
		"FREQ=HOURLY;BYHOUR=5;INTERVAL=48", "FREQ=DAILY;INTERVAL=99999999",
		"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=NEVER", "FREQ=YEARLY;BYMONTH=-20;BYMONTHDAY=1", "COUNT=3", "nonsense",
		"FREQ=DAILY;BYHOUR=99", "FREQ=YEARLY;BYEASTER=1", "FREQ=DAILY;BYHOUR=1" + strings.Repeat(",1", 20_000),
		"FREQ=DAILY;UNTIL=soon"} {
		t.Run(rule[:min(len(rule), 40)], func(t *testing.T) {
			s := newShelf(t)
			s.write("a.ics", calendarOf(eventOf("UID:1", "SUMMARY:x", "DTSTART:20250101T100000Z", "RRULE:"+rule)))
			res := s.collect(guesttest.Options{})
			if got := reasons(res); !slices.Equal(got, []string{"unsupported_recurrence"}) {
				t.Errorf("skips %v", got)
			}
			if m := events(t, res)["x"]; len(texts(m["occurrences"])) != 0 || m["rrule"] == nil {
				t.Errorf("event %v", m)
			}
		})
	}
}

// The window limits the list, and its months follow the calendar.
func TestWindow(t *testing.T) {
	s := newShelf(t)
	s.write("a.ics", calendarOf(eventOf("UID:1", "SUMMARY:x", "DTSTART;VALUE=DATE:19990101", "RRULE:FREQ=DAILY")))
	for _, c := range []struct {
		config map[string]any
		first  string
		count  int
	}{
		{map[string]any{"window_start": "2025-03-05", "window_days": 7}, "2025-03-05", 7},
		{map[string]any{"window_start": "2025-03-05", "max_occurrences": 3}, "2025-03-05", 3},
		{map[string]any{"window_days": 0}, "", 0},
		{map[string]any{}, "2000-01-01", 92}, // the time of a synctest bubble
	} {
		synctest.Test(t, func(t *testing.T) {
			bubble := &shelf{t, s.dir}
			got := texts(events(t, bubble.collect(guesttest.Options{Config: c.config}))["x"]["occurrences"])
			if len(got) != c.count || c.count > 0 && got[0] != c.first {
				t.Errorf("%v: %d, %v", c.config, len(got), got)
			}
		})
	}
}
