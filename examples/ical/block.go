package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	ical "github.com/emersion/go-ical"
)

const (
	maxNesting = 8
	maxLine    = 1 << 20 // unfolded
)

// A block is a component of a file as text: its content lines, unfolded. A file
// is cut into blocks before any is parsed, so that a bad event costs itself and
// not its calendar.
type block struct {
	name   string
	lines  []string // without BEGIN and END, those of children included
	blocks []*block // children
}

var (
	errNoCalendar = errors.New("there is no calendar in it")
	errCutShort   = errors.New("it ends in the middle of a calendar")
)

// parseBlocks returns the calendars of a file. Those that are whole come with
// the error, too.
func parseBlocks(data []byte) ([]*block, error) {
	var calendars []*block
	var open []*block
	for line := range unfolded(text(data)) {
		name, value, _ := strings.Cut(line, ":")
		name, value = strings.ToUpper(strings.TrimSpace(name)), strings.ToUpper(strings.TrimSpace(value))
		switch {
		case name == "BEGIN":
			if len(open) == maxNesting {
				return calendars, fmt.Errorf("components are nested more than %d deep", maxNesting)
			}
			if len(open) == 0 && value != ical.CompCalendar {
				return calendars, errNoCalendar
			}
			open = append(open, &block{name: value})
			continue
		case len(open) == 0:
			continue // between calendars
		case name == "END":
			done := open[len(open)-1]
			if done.name != value {
				return calendars, fmt.Errorf("%s ends as %.40q", done.name, value)
			}
			open = open[:len(open)-1]
			if len(open) == 0 {
				calendars = append(calendars, done)
				continue
			}
			parent := open[len(open)-1]
			parent.blocks = append(parent.blocks, done)
			continue
		case len(line) > maxAttachment && isAttachment(line):
			line = "ATTACH;VALUE=BINARY:!" // attach says that it is left out
		case len(line) > maxLine && !isAttachment(line):
			return calendars, fmt.Errorf("a line is longer than %d bytes", maxLine)
		}
		last := open[len(open)-1]
		last.lines = append(last.lines, line)
	}
	if len(open) > 0 {
		if open[0].name == ical.CompCalendar {
			calendars = append(calendars, open[0]) // what there is of it
		}
		return calendars, errCutShort
	}
	if len(calendars) == 0 {
		return nil, errNoCalendar
	}
	return calendars, nil
}

// isAttachment reports whether a line holds a file.
func isAttachment(line string) bool {
	return len(line) > len(ical.PropAttach) && strings.EqualFold(line[:len(ical.PropAttach)], ical.PropAttach) &&
		strings.ContainsRune(":;", rune(line[len(ical.PropAttach)]))
}

// text makes a file UTF-8: what is not, is Latin-1, as old programs write it.
func text(data []byte) string {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if utf8.Valid(data) {
		return string(data)
	}
	var b strings.Builder
	b.Grow(len(data) + len(data)/8)
	for _, c := range data {
		b.WriteRune(rune(c))
	}
	return b.String()
}

// unfolded yields the content lines: a line that starts with white space continues the
// one before.
func unfolded(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		var parts []string
		flush := func() bool {
			line := strings.Join(parts, "")
			parts = parts[:0]
			return line == "" || yield(line)
		}
		for raw := range strings.Lines(s) {
			raw = strings.TrimRight(raw, "\r\n")
			if raw != "" && (raw[0] == ' ' || raw[0] == '\t') && len(parts) > 0 {
				parts = append(parts, raw[1:])
				continue
			}
			if !flush() {
				return
			}
			parts = append(parts, raw)
		}
		flush()
	}
}

// decode parses a block and its children.
func (b *block) decode() (*ical.Component, error) {
	c := &ical.Component{Name: b.name}
	var err error
	if c.Props, err = b.properties(); err != nil {
		return nil, err
	}
	for _, child := range b.blocks {
		sub, err := child.decode()
		if err != nil {
			return nil, err
		}
		c.Children = append(c.Children, sub)
	}
	return c, nil
}

// properties parses the lines of a block. go-ical panics on some lines that end
// too soon.
func (b *block) properties() (props ical.Props, err error) {
	defer func() {
		if p := recover(); p != nil {
			props, err = nil, errors.New("a line ends too soon")
		}
	}()
	var s strings.Builder
	s.WriteString("BEGIN:VCALENDAR\n")
	for _, line := range b.lines {
		s.WriteString(line)
		s.WriteByte('\n')
	}
	s.WriteString("END:VCALENDAR\n")
	c, err := ical.NewDecoder(strings.NewReader(s.String())).Decode()
	if err != nil {
		return nil, err
	}
	return c.Props, nil
}

// line returns the value of a property without parsing the block, for one that
// cannot be.
func (b *block) line(name string) string {
	for _, l := range b.lines {
		head, value, ok := strings.Cut(l, ":")
		if property, _, _ := strings.Cut(head, ";"); ok && strings.EqualFold(property, name) {
			return value
		}
	}
	return ""
}
