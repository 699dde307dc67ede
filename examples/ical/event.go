package main

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strings"
	"time"

	ical "github.com/emersion/go-ical"
)

// A key names an event or alarm among all: a digest of what does. It is short,
// because the cursor holds the keys of all records, and safe, because the names
// that calendar programs make up can be of any length.
type key [10]byte

var keyEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func (k key) String() string { return keyEncoding.EncodeToString(k[:]) }

func keyOf(parts ...string) key {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return key(sum[:len(key{})])
}

// An event is one VEVENT: an event, a series, or one repetition of a series that
// was changed.
type event struct {
	key      key
	calendar string // its path
	uid      string
	replaces string // RECURRENCE-ID as text, or empty
	instead  moment // RECURRENCE-ID, if replaces is not empty

	props  ical.Props
	alarms []*ical.Component
	zones  *zones

	timed      bool // it has a start
	start, end moment
	recurrence recurrence
	recurring  bool
	sequence   int
	updated    string
	trouble    error // why the repetitions are not known
}

var errNoStart = errors.New("its start cannot be read")

// parseEvent reads a VEVENT.
func parseEvent(b *block, calendar string, z *zones) (*event, error) {
	c, err := b.decode()
	if err != nil {
		return nil, err
	}
	e := &event{calendar: calendar, props: c.Props, zones: z}
	for _, child := range c.Children {
		if child.Name == ical.CompAlarm {
			e.alarms = append(e.alarms, child)
		}
	}
	if err := e.readTimes(); err != nil {
		return nil, err
	}
	e.sequence = numberOf(e.props, ical.PropSequence)
	e.updated = z.utcTime(e.props, ical.PropLastModified)
	return e, e.identify(b)
}

// identify finds what names the event. One without a UID is named by its text.
func (e *event) identify(b *block) error {
	if e.uid = textOf(e.props, ical.PropUID); e.uid == "" {
		sum := sha256.Sum256([]byte(strings.Join(b.lines, "\n")))
		e.uid = "without-uid-" + short(sum[:])
	}
	if p := e.props.Get(ical.PropRecurrenceID); p != nil {
		var err error
		if e.instead, err = e.zones.momentOf(p); err != nil {
			return errors.New("its RECURRENCE-ID cannot be read")
		}
		e.replaces = e.instead.String()
	}
	e.key = eventKey(e.uid, e.replaces)
	return nil
}

func eventKey(uid, replaces string) key { return keyOf("event", uid, replaces) }

func (e *event) readTimes() error {
	p := e.props.Get(ical.PropDateTimeStart)
	if p == nil {
		return nil // allowed where a METHOD is given
	}
	var err error
	if e.start, err = e.zones.momentOf(p); err != nil || !sane(e.start.clock) {
		return errNoStart
	}
	e.timed, e.end = true, e.readEnd()
	if e.recurrence, e.recurring, err = e.zones.recurrenceOf(e.props, e.start); err != nil {
		e.trouble = err
	}
	return nil
}

// sane leaves out the years at which libraries give zero a meaning of their own,
// or RFC 3339 ends.
func sane(t time.Time) bool { return t.Year() > 1 && t.Year() < 9998 }

// readEnd is DTEND, or the start and DURATION; without either an event of dates
// has one day and another no time at all.
func (e *event) readEnd() moment {
	if p := e.props.Get(ical.PropDateTimeEnd); p != nil {
		if end, err := e.zones.momentOf(p); err == nil && sane(end.clock) {
			return end
		}
	}
	if d, ok := durationOf(e.props, ical.PropDuration); ok && d > 0 && d < 1000*24*time.Hour {
		return e.start.plus(d)
	}
	if e.start.date {
		return e.start.plus(24 * time.Hour)
	}
	return e.start
}

func durationOf(props ical.Props, name string) (time.Duration, bool) {
	p := props.Get(name)
	if p == nil {
		return 0, false
	}
	d, err := (&ical.Prop{Name: ical.PropDuration, Value: strings.TrimSpace(p.Value)}).Duration()
	return d, err == nil
}

func (e *event) cancelled() bool { return lowerOf(e.props, ical.PropStatus) == "cancelled" }

// newer reports whether e is a later version of the same event than other.
func (e *event) newer(other *event) bool {
	if e.sequence != other.sequence {
		return e.sequence > other.sequence
	}
	return e.updated > other.updated
}
