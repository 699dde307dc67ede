package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

func TestEventRecord(t *testing.T) {
	s := newShelf(t)
	s.write("work/team.ics", "\xef\xbb\xbf"+calendarOf("X-WR-CALNAME:Team\nX-WR-TIMEZONE:Europe/Berlin\nMETHOD:PUBLISH\n",
		eventOf("UID:one@example.org", "DTSTAMP:20250101T000000Z", "SUMMARY:Plan\\, review\\; and a long line that is folded",
			"  in two", "DESCRIPTION:first\\nsecond \\\\ C:\\Temp", "LOCATION:Room \"5\"",
			"DTSTART;TZID=Europe/Berlin:20250310T090000", "DTEND;TZID=Europe/Berlin:20250310T103000", "STATUS:CONFIRMED",
			"TRANSP:TRANSPARENT", "CLASS:PRIVATE", "URL:https://example.org/a", "CATEGORIES:Work,A\\,B", "CATEGORIES:More",
			"SEQUENCE:3", "CREATED:20250102T030405Z", "LAST-MODIFIED:20250203T040506Z",
			`ORGANIZER;CN="Doe, Jane":mailto:jane@example.org`,
			"ATTENDEE;CN=Al;ROLE=REQ-PARTICIPANT;PARTSTAT=ACCEPTED;CUTYPE=INDIVIDUAL:MAILTO:al@example.org", "BEGIN:VALARM",
			"ACTION:DISPLAY", "TRIGGER:-PT15M", "DESCRIPTION:soon", "END:VALARM", "BEGIN:VALARM", "UID:alarm-2", "ACTION:AUDIO",
			"TRIGGER;RELATED=END:PT5M", "REPEAT:2", "DURATION:PT1M", "END:VALARM", "BEGIN:VALARM", "ACTION:EMAIL",
			"TRIGGER;VALUE=DATE-TIME:20250309T080000Z", "END:VALARM")))
	res := s.collect(guesttest.Options{})
	if len(res.Skips) != 0 {
		t.Errorf("skips %+v", res.Skips)
	}
	wantID := eventKey("one@example.org", "").String()
	want := map[string]any{
		"id": wantID, "uid": "one@example.org", "recurrence_id": nil, "calendar": "work/team.ics",
		"summary": "Plan, review; and a long line that is folded in two", "description": "first\nsecond \\ C:\\Temp",
		"location": `Room "5"`, "url": "https://example.org/a", "status": "confirmed", "start": "2025-03-10T09:00:00+01:00",
		"end": "2025-03-10T10:30:00+01:00", "all_day": false, "time_zone": "Europe/Berlin", "transparent": true,
		"visibility": "private", "organizer": map[string]any{"name": "Doe, Jane", "email": "jane@example.org"},
		"attendees": []any{map[string]any{"name": "Al", "email": "al@example.org", "role": "req-participant",
			"status": "accepted", "type": "individual"}},
		"categories": []any{"Work", "A,B", "More"}, "rrule": nil, "occurrences": []any{}, "sequence": 3.0,
		"attachments": []any{}, "attachment_urls": []any{},
		"created_at": "2025-01-02T03:04:05Z", "updated_at": "2025-02-03T04:05:06Z",
	}
	if diff := cmp.Diff(want, fields(t, res.Records["events"][0])); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	wantCalendar := map[string]any{"id": keyOf("calendar", "work/team.ics").String(), "path": "work/team.ics",
		"name": "Team", "description": nil,
		"time_zone": "Europe/Berlin", "product": "-//test//", "method": "publish", "events": 1.0}
	if diff := cmp.Diff(wantCalendar, fields(t, res.Records["calendars"][0])); diff != "" {
		t.Errorf("calendar (-want +got):\n%s", diff)
	}
	alarm := func(action string, offset, related, at any, repeat float64, every, description any) map[string]any {
		return map[string]any{"event_id": wantID, "action": action, "offset_seconds": offset, "related_to": related, "at": at,
			"repeat": repeat, "repeat_seconds": every, "summary": nil, "description": description}
	}
	wantAlarms := []map[string]any{
		alarm("display", -900.0, "start", nil, 0, nil, "soon"),
		alarm("audio", 300.0, "end", nil, 2, 60.0, nil),
		alarm("email", nil, nil, "2025-03-09T08:00:00Z", 0, nil, nil),
	}
	var alarms []map[string]any
	for _, r := range res.Records["alarms"] {
		m := fields(t, r)
		delete(m, "id")
		alarms = append(alarms, m)
	}
	if diff := cmp.Diff(wantAlarms, alarms); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
}

// Every kind of start and end that calendars know.
func TestTimes(t *testing.T) {
	custom := `BEGIN:VTIMEZONE
TZID:Office
BEGIN:STANDARD
DTSTART:16011028T030000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010325T020000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
END:DAYLIGHT
END:VTIMEZONE
BEGIN:VTIMEZONE
TZID:Named elsewhere
X-LIC-LOCATION:America/New_York
END:VTIMEZONE
`
	for _, c := range []struct {
		name, start, end string // content lines
		want             []any  // start, end, all_day, time_zone
	}{
		{"utc", "DTSTART:20250310T090000Z", "DTEND:20250310T100000Z",
			[]any{"2025-03-10T09:00:00Z", "2025-03-10T10:00:00Z", false, "UTC"}},
		{"floating", "DTSTART:20250310T090000", "DURATION:PT90M",
			[]any{"2025-03-10T09:00:00", "2025-03-10T10:30:00", false, nil}},
		{"all day", "DTSTART;VALUE=DATE:20250310", "X-NO:END", []any{"2025-03-10", "2025-03-11", true, nil}},
		{"all day, type not said", "DTSTART:20250310", "DTEND:20250312", []any{"2025-03-10", "2025-03-12", true, nil}},
		{"days", "DTSTART;VALUE=DATE:20250310", "DURATION:P1W", []any{"2025-03-10", "2025-03-17", true, nil}},
		{"no end", "DTSTART:20250310T090000Z", "X-NO:END",
			[]any{"2025-03-10T09:00:00Z", "2025-03-10T09:00:00Z", false, "UTC"}},
		{"windows name", "DTSTART;TZID=W. Europe Standard Time:20250701T090000", "DURATION:PT1H",
			[]any{"2025-07-01T09:00:00+02:00", "2025-07-01T10:00:00+02:00", false, "Europe/Berlin"}},
		{"quoted windows name", `DTSTART;TZID="Pacific Standard Time (Mexico)":20250101T090000`, "DURATION:PT1H",
			[]any{"2025-01-01T09:00:00-08:00", "2025-01-01T10:00:00-08:00", false, "America/Tijuana"}},
		{"name in a path", "DTSTART;TZID=/freeassociation.sourceforge.net/Tzfile/Europe/Rome:20250101T090000",
			"DURATION:PT1H",
			[]any{"2025-01-01T09:00:00+01:00", "2025-01-01T10:00:00+01:00", false, "Europe/Rome"}},
		{"defined in winter", "DTSTART;TZID=Office:20250101T090000", "DURATION:PT1H",
			[]any{"2025-01-01T09:00:00+01:00", "2025-01-01T10:00:00+01:00", false, "Office"}},
		{"defined in summer", "DTSTART;TZID=Office:20250701T090000", "DURATION:PT1H",
			[]any{"2025-07-01T09:00:00+02:00", "2025-07-01T10:00:00+02:00", false, "Office"}},
		{"defined elsewhere", "DTSTART;TZID=Named elsewhere:20250701T090000", "DURATION:PT1H",
			[]any{"2025-07-01T09:00:00-04:00", "2025-07-01T10:00:00-04:00", false, "America/New_York"}},
		{"left out in spring", "DTSTART;TZID=Europe/Berlin:20250330T023000", "DURATION:PT1H",
			[]any{"2025-03-30T03:30:00+02:00", "2025-03-30T04:30:00+02:00", false, "Europe/Berlin"}},
		{"left out in spring, defined", "DTSTART;TZID=Office:20250330T023000", "DURATION:PT1H",
			[]any{"2025-03-30T03:30:00+02:00", "2025-03-30T04:30:00+02:00", false, "Office"}},
		{"twice in autumn", "DTSTART;TZID=Europe/Berlin:20251026T023000", "DURATION:PT1H",
			[]any{"2025-10-26T02:30:00+02:00", "2025-10-26T02:30:00+02:00", false, "Europe/Berlin"}},
		{"a day over the change", "DTSTART;TZID=Europe/Berlin:20250329T090000", "DURATION:P1D",
			[]any{"2025-03-29T09:00:00+01:00", "2025-03-30T09:00:00+02:00", false, "Europe/Berlin"}},
		{"hours over the change", "DTSTART;TZID=Europe/Berlin:20250330T010000", "DURATION:PT3H",
			[]any{"2025-03-30T01:00:00+01:00", "2025-03-30T05:00:00+02:00", false, "Europe/Berlin"}},
		{"two zones", "DTSTART;TZID=Europe/Berlin:20250310T090000", "DTEND;TZID=America/New_York:20250310T120000",
			[]any{"2025-03-10T09:00:00+01:00", "2025-03-10T12:00:00-04:00", false, "Europe/Berlin"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf(t)
			s.write("a.ics", calendarOf(custom, eventOf("UID:1", "SUMMARY:x", c.start, c.end)))
			res := s.collect(guesttest.Options{})
			m := events(t, res)["x"]
			if diff := cmp.Diff(c.want, []any{m["start"], m["end"], m["all_day"], m["time_zone"]}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(res.Skips) != 0 {
				t.Errorf("skips %+v", res.Skips)
			}
		})
	}
}
