package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/guest-sdk/guesttest"
)

func simple(uid, summary string) string {
	return eventOf("UID:"+uid, "SUMMARY:"+summary, "DTSTART:20250310T090000Z", "BEGIN:VALARM", "ACTION:DISPLAY",
		"TRIGGER:-PT5M", "END:VALARM")
}

func changes(res *guesttest.Result) []string {
	var out []string
	for _, stream := range []string{"calendars", "events", "alarms"} {
		for _, r := range res.Records[stream] {
			verb := "put"
			if r.Deleted {
				verb = "delete"
			}
			out = append(out, verb+" "+stream)
		}
	}
	return out
}

// Runs after the first collect only what changed.
func TestOnlyChanges(t *testing.T) {
	s := newShelf(t)
	s.write("a.ics", calendarOf(simple("1", "one"), simple("2", "two")))
	s.write("sub/b.ics", calendarOf(simple("3", "three")))
	last := s.collect(guesttest.Options{})
	step := func(name string, do func(), want ...string) {
		t.Helper()
		do()
		res := s.again(last)
		if diff := cmp.Diff(want, changes(res)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for stream, cursor := range last.States {
			if res.States[stream] == nil {
				res.States[stream] = cursor // what was not staged stays
			}
		}
		last = res
	}
	step("nothing", func() {})
	step("touched", func() {
		future := time.Now().Add(time.Hour)
		if err := os.Chtimes(filepath.Join(s.dir, "a.ics"), future, future); err != nil {
			t.Fatal(err)
		}
	})
	step("exported anew", func() {
		s.write("a.ics", calendarOf(strings.Replace(simple("1", "one"), "UID:1", "DTSTAMP:20250601T000000Z\nUID:1", 1),
			simple("2", "two")))
	})
	step("changed", func() { s.write("a.ics", calendarOf(simple("1", "new"), simple("2", "two"))) }, "put events")
	step("moved to another file", func() {
		if err := os.Rename(filepath.Join(s.dir, "sub/b.ics"), filepath.Join(s.dir, "c.ics")); err != nil {
			t.Fatal(err)
		}
	}, "put calendars", "delete calendars", "put events")
	step("event removed", func() { s.write("a.ics", calendarOf(simple("1", "new"))) }, "put calendars",
		"delete events", "delete alarms")
	step("file removed", func() { s.remove("c.ics") }, "delete calendars", "delete events", "delete alarms")
	step("event back", func() { s.write("a.ics", calendarOf(simple("1", "new"), simple("2", "two"))) },
		"put calendars", "put events", "put alarms")
}

// Files that did not change are not even opened.
func TestUnchangedFilesAreNotRead(t *testing.T) {
	s := newShelf(t)
	s.write("a.ics", calendarOf(simple("1", "one")))
	first := s.collect(guesttest.Options{})
	path := filepath.Join(s.dir, "a.ics")
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s.write("a.ics", calendarOf(simple("1", "two"))) // of the same size
	if err := os.Chtimes(path, st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got := changes(s.again(first)); got != nil {
		t.Errorf("changes %v", got)
	}
	wider := s.collect(guesttest.Options{State: stateAfter(first), Config: map[string]any{"include_descriptions": false}})
	if got := changes(wider); !slices.Equal(got, []string{"put events"}) {
		t.Errorf("with other settings: changes %v", got)
	}
	full := s.collect(guesttest.Options{State: stateAfter(first), Mode: abi.FullRefresh})
	if got := changes(full); !slices.Equal(got, []string{"put calendars", "put events", "put alarms"}) {
		t.Errorf("in a full refresh: changes %v", got)
	}
}

// What cannot be read is reported, costs only itself, and is not taken for
// deleted.
func TestMalformed(t *testing.T) {
	good := calendarOf(simple("1", "one"), simple("2", "two"))
	for _, c := range []struct {
		name, content string
		reasons       []string
		kept          int // of the two events, not deleted
	}{
		{"empty", "", []string{"malformed_file"}, 2},
		{"not a calendar", "hello\nworld\n", []string{"malformed_file"}, 2},
		{"another component", "BEGIN:VCARD\nEND:VCARD\n", []string{"malformed_file"}, 2},
		{"cut in an event", good[:len(good)-60], []string{"malformed_file"}, 2},
		{"cut between events", strings.TrimSuffix(calendarOf(simple("1", "one")), "END:VCALENDAR\n"),
			[]string{"malformed_file"}, 2},
		{"crossed ends", strings.Replace(good, "END:VALARM", "END:VEVENT", 1), []string{"malformed_file"}, 2},
		{"too deep", strings.Repeat("BEGIN:VCALENDAR\n", 100), []string{"malformed_file"}, 2},
		{"line without a colon", strings.Replace(good, "SUMMARY:one", "SUMMARY one", 1), []string{"malformed_event"}, 2},
		{"line that ends in a parameter", strings.Replace(good, "SUMMARY:one", "SUMMARY;X=1", 1),
			[]string{"malformed_event"}, 2},
		{"open quote", strings.Replace(good, "SUMMARY:one", `SUMMARY;X="1:one`, 1), []string{"malformed_event"}, 2},
		{"bad start", strings.Replace(good, "DTSTART:20250310T090000Z", "DTSTART:20251310T090000Z", 1),
			[]string{"malformed_event"}, 2},
		{"unknown zone", strings.Replace(good, "DTSTART:", "DTSTART;TZID=Nowhere/At All:", 1), nil, 2},
		{"unknown zone, local", strings.Replace(good, "DTSTART:20250310T090000Z", "DTSTART;TZID=Nowhere:20250310T090000", 1),
			[]string{"unknown_time_zone"}, 2},
		{"really gone", calendarOf(simple("1", "one")), nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf(t)
			s.write("a.ics", good)
			s.write("b.ics", calendarOf(simple("3", "three")))
			first := s.collect(guesttest.Options{})
			s.write("a.ics", c.content)
			s.write("b.ics", calendarOf(simple("3", "changed")))
			res := s.again(first)
			if diff := cmp.Diff(c.reasons, reasons(res)); diff != "" {
				t.Errorf("skips (-want +got):\n%s", diff)
			}
			deleted := 0
			for _, r := range res.Records["events"] {
				if r.Deleted {
					deleted++
				}
			}
			if 2-deleted != c.kept {
				t.Errorf("%d events deleted", deleted)
			}
			if events(t, res)["changed"] == nil {
				t.Error("the other file was not collected")
			}
		})
	}
}

// A file in Latin-1, with bare line feeds and without a last one.
func TestOldFiles(t *testing.T) {
	s := newShelf(t)
	content := strings.TrimSuffix(calendarOf(eventOf("UID:1", "SUMMARY:Caf\xe9", "DTSTART:20250101")), "\n")
	if err := os.WriteFile(filepath.Join(s.dir, "A.ICS"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	s.write(".hidden.ics", "nonsense")
	s.write("notes.txt", "nonsense")
	res := s.collect(guesttest.Options{})
	if events(t, res)["Café"] == nil || len(res.Skips) != 0 {
		t.Errorf("%s", res.Transcript)
	}
}

// An event that is in two files gives one record, of its newest version, in whatever
// order the files are read.
func TestDuplicates(t *testing.T) {
	s := newShelf(t)
	version := func(summary, sequence string) string {
		return eventOf("UID:1", "SUMMARY:"+summary, "DTSTART:20250310T090000Z", "SEQUENCE:"+sequence)
	}
	s.write("a.ics", calendarOf(version("old", "1")))
	s.write("b.ics", calendarOf(version("new", "2")))
	s.write("c.ics", calendarOf(version("old again", "0")))
	s.write("d.ics", calendarOf(simple("without", "x"))+calendarOf(simple("second", "y")))
	res := s.collect(guesttest.Options{})
	got := events(t, res)
	if len(got) != 3 || got["new"] == nil || got["new"]["calendar"] != "b.ics" || got["y"]["calendar"] != "d.ics#2" {
		t.Errorf("events %v", got)
	}
	if want := []string{"duplicate_event", "duplicate_event"}; !slices.Equal(reasons(res), want) {
		t.Errorf("skips %v", reasons(res))
	}
	s.remove("b.ics")
	next := s.again(res)
	if got := events(t, next); got["old"] == nil {
		t.Errorf("after the newest went: %v", got)
	}
}

func TestWithoutUID(t *testing.T) {
	s := newShelf(t)
	s.write("a.ics", calendarOf(eventOf("SUMMARY:x", "DTSTART:20250310"), eventOf("SUMMARY:y", "DTSTART:20250310"),
		eventOf("SUMMARY:z", "UID:1")))
	res := s.collect(guesttest.Options{})
	got := events(t, res)
	if len(got) != 3 || got["x"]["id"] == got["y"]["id"] || got["z"]["start"] != nil {
		t.Errorf("events %v", got)
	}
}

func TestScope(t *testing.T) {
	s := newShelf(t)
	s.write("a.ics", calendarOf(eventOf("UID:1", "SUMMARY:march", "DTSTART:20250310T090000Z"),
		eventOf("UID:2", "SUMMARY:may", "DTSTART;VALUE=DATE:20250510"),
		eventOf("UID:3", "SUMMARY:no time")))
	s.write("b.ics", calendarOf(eventOf("UID:4", "SUMMARY:other file", "DTSTART:20250510T090000Z")))
	all := s.collect(guesttest.Options{})
	res := s.collect(guesttest.Options{State: stateAfter(all), Mode: abi.FullRefresh,
		Scope: `{"streams":[{"name":"events","fields":["summary"],"resources":["a.ics"],"time_range":{"since":"2025-04-01"}}]}`})
	want := map[string]map[string]any{"may": {"id": eventKey("2", "").String(), "uid": "2", "calendar": "a.ics",
		"summary": "may", "start": "2025-05-10"}}
	if diff := cmp.Diff(want, events(t, res)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, r := range res.Records["events"] {
		if r.Deleted {
			t.Error("what is outside of the scope is deleted")
		}
	}
}

// The order is always the same.
func TestOrder(t *testing.T) {
	s := newShelf(t)
	for i := range 20 {
		s.write(fmt.Sprintf("%d/f%d.ics", i%3, i), calendarOf(simple(fmt.Sprint(i), "x"), simple(fmt.Sprint("b", i), "y")))
	}
	first, second := s.collect(guesttest.Options{}).Transcript, s.collect(guesttest.Options{}).Transcript
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyFolderAndRefusals(t *testing.T) {
	s := newShelf(t)
	s.collect(guesttest.Options{})
	for _, c := range []struct {
		config map[string]any
		mount  bool
		want   string
	}{
		{map[string]any{"window_start": "soon"}, true, "invalid_settings"},
		{map[string]any{"window_days": -1}, true, "invalid_settings"},
		{map[string]any{"max_occurrences": 1_000_000}, true, "invalid_settings"},
		{map[string]any{}, false, "mount_missing"},
	} {
		o := guesttest.Options{Manifest: manifest, Config: c.config}
		if c.mount {
			o.Files = map[string]string{"calendars": s.dir}
		}
		res := guesttest.Run(t, connector, o)
		if res.Status != abi.Failed || res.Done == nil || res.Done.Error == nil || res.Done.Error.Code != c.want {
			t.Errorf("%v: status %s, done %+v", c.config, res.Status, res.Done)
		}
	}
}

func TestCancel(t *testing.T) {
	s := newShelf(t)
	s.write("a.ics", calendarOf(simple("1", "one")))
	res := guesttest.Run(t, connector, guesttest.Options{Manifest: manifest, Files: map[string]string{"calendars": s.dir},
		Cancel: func(call abi.Call) bool { return call == abi.CallProgress }})
	if res.Status != abi.Cancelled {
		t.Errorf("status %s", res.Status)
	}
}

// A cursor has a bound, and the largest one fits.
func TestCursorBound(t *testing.T) {
	known := map[key]digest{}
	for i := range maxKnown + 10 {
		known[keyOf(fmt.Sprint(i))] = digest{1}
	}
	packed, whole := pack(known)
	if whole || len(packed) > abi.DefaultLimits().CursorBytes-1024 || len(cursor{Known: packed}.unpack()) != maxKnown {
		t.Errorf("%d bytes, whole %v", len(packed), whole)
	}
	if got := (cursor{Known: "AAAA"}).unpack(); len(got) != 0 {
		t.Errorf("a broken cursor knows %d records", len(got))
	}
}

// No file, however broken, stops a run.
func FuzzFile(f *testing.F) {
	f.Add([]byte(calendarOf(simple("1", "one"))))
	f.Add([]byte("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;TZID=\"a:20250101\nRRULE:FREQ=YEARLY;BYDAY=1MO\nEND:VEVENT\nEND:VCALENDAR"))
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		b := []byte(calendarOf(eventOf("UID:1", "DTSTART;TZID=Europe/Berlin:20250310T090000", "RRULE:FREQ=WEEKLY;COUNT=3",
			"EXDATE:20250317T080000Z")))
		for range 3 {
			b[r.IntN(len(b))] = byte(r.IntN(256))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := newLibrary(newTrouble())
		l.addFile("f.ics", data)
		w := window{time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, 4, 1, 0, 0, 0, 0, time.UTC), 50}
		for _, e := range l.events {
			list, err := seriesOf(l.events).occurrences(e, w)
			if err != nil && !errors.Is(err, errRule) {
				t.Error(err)
			}
			for _, text := range list {
				if _, ok := abi.ParseTime(text); !ok {
					t.Errorf("occurrence %q", text)
				}
			}
		}
	})
}
