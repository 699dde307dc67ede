package main

import (
	"fmt"
	"runtime"

	ical "github.com/emersion/go-ical"
)

// What is kept in memory at most. A guest has 256 MiB.
const (
	maxEvents = 100_000
	maxBytes  = 64 << 20
)

// A calendar is one VCALENDAR of a file.
type calendar struct {
	path  string // of the file, with #2 and so on from the second one in it
	props ical.Props
	count int // events in it
}

// A library is all calendars of a folder.
type library struct {
	calendars []*calendar
	events    []*event       // each once, in order of files
	byKey     map[key]*event // the same
	trouble   *trouble
	kept      map[key]bool // of events that are there and cannot be read
	broken    int          // files that cannot be read in full
	unread    int          // those of them that could not be read at all
	bytes     int
	full      bool // there is more than maxEvents or maxBytes
}

func newLibrary(t *trouble) *library {
	return &library{byKey: map[key]*event{}, kept: map[key]bool{}, trouble: t}
}

// addFile takes in the calendars of a file, as far as they can be read.
func (l *library) addFile(path string, data []byte) {
	if l.bytes += len(data); l.bytes > maxBytes {
		l.full = true
		return
	}
	blocks, err := parseBlocks(data)
	if err != nil {
		l.breakFile(path, err)
	}
	for i, b := range blocks {
		name := path
		if i > 0 {
			name = fmt.Sprintf("%s#%d", path, i+1)
		}
		l.addCalendar(name, b)
	}
}

// breakFile notes a file that cannot be read in full. What is missing from it is
// not deleted.
func (l *library) breakFile(path string, err error) {
	l.broken++
	l.trouble.add("malformed_file", path, "%s: %v", path, err)
}

func (l *library) addCalendar(path string, b *block) {
	c := &calendar{path: path}
	var err error
	if c.props, err = b.properties(); err != nil {
		l.trouble.add("malformed_file", path, "%s: the head of the calendar: %v", path, err)
		c.props = ical.Props{}
	}
	l.calendars = append(l.calendars, c)
	zones := newZones(b)
	for _, child := range b.blocks {
		if child.name != ical.CompEvent {
			continue
		}
		runtime.Gosched() // see softMemory
		c.count++
		if len(l.events) == maxEvents {
			l.full = true
			continue
		}
		l.addEvent(child, c, zones)
	}
	for _, name := range zones.unknown {
		l.trouble.add("unknown_time_zone", path, "%s: nothing is known of the time zone %.100q", path, name)
	}
}

// addEvent adds an event, or lets it replace an older version of itself from another
// calendar.
func (l *library) addEvent(b *block, c *calendar, z *zones) {
	e, err := parseEvent(b, c.path, z)
	if err != nil {
		uid := clean(unescape(b.line(ical.PropUID)))
		l.keep(uid, b, z)
		l.trouble.add("malformed_event", c.path, "%s: event %.100q: %v", c.path, uid, err)
		return
	}
	if e.trouble != nil {
		l.trouble.event(e, e.trouble)
	}
	other := l.byKey[e.key]
	if other == nil {
		l.byKey[e.key] = e
		l.events = append(l.events, e)
		return
	}
	if other.calendar != e.calendar {
		l.trouble.add("duplicate_event", c.path, "%s: event %.100q is in %s, too", c.path, e.uid, other.calendar)
	}
	if e.newer(other) {
		*other = *e
	}
}

// keep remembers the key of an event that cannot be read, so that its last
// version is not deleted.
func (l *library) keep(uid string, b *block, z *zones) {
	replaces := ""
	if m, err := z.parseMoment(b.line(ical.PropRecurrenceID), ""); err == nil {
		replaces = m.String()
	}
	l.kept[eventKey(uid, replaces)] = true
}
