package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Bounds of an expression.
const (
	maxExpression = 256 // bytes
	minEvery      = time.Second
	maxEvery      = 366 * 24 * time.Hour
)

// descriptors are the names of R194, with whether they follow the wall clock.
var descriptors = map[string]bool{
	"@yearly": true, "@annually": true, "@monthly": true, "@weekly": true, "@daily": true, "@midnight": true, "@hourly": false,
}

const everyPrefix = "@every "

// An Expression is a cron expression that was checked. The zero value never
// fires.
type Expression struct {
	text  string
	every time.Duration // of @every, else 0
	fixed bool          // it follows the wall clock
	spec  cron.Schedule
}

// ErrNever: an expression has no match within the five years that the library
// looks ahead.
var ErrNever = errors.New("never fires")

// Parse checks and reads an expression in the syntax of R194. Its errors are
// sentences that name what to change, and never what was given.
func Parse(text string) (Expression, error) {
	if err := characters(text); err != nil {
		return Expression{}, err
	}
	if rest, ok := strings.CutPrefix(text, everyPrefix); ok {
		return parseEvery(text, rest)
	}
	e := Expression{text: strings.Join(strings.Fields(text), " ")}
	if strings.HasPrefix(e.text, "@") {
		wall, known := descriptors[e.text]
		if !known {
			return Expression{}, errors.New("there is no such schedule; there are @yearly, @monthly, @weekly, @daily, @hourly and @every")
		}
		e.fixed = wall
	} else {
		parts := strings.Fields(e.text)
		if len(parts) != len(fields) {
			return Expression{}, fmt.Errorf("it has %d fields, not five: minute, hour, day of month, month, day of week", len(parts))
		}
		for i, f := range fields {
			if err := f.check(parts[i]); err != nil {
				return Expression{}, err
			}
		}
		e.fixed = fixed(parts[0]) && fixed(parts[1])
	}
	var err error
	e.spec, err = parse(e.text)
	return e, err
}

// characters refuses what no expression contains: above all "=", which the
// library takes for a time zone, and panics on.
func characters(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	if len(text) > maxExpression {
		return fmt.Errorf("it is longer than %d bytes", maxExpression)
	}
	if strings.Contains(text, "=") {
		return errors.New("it names a time zone; the zone belongs in timezone")
	}
	every := strings.HasPrefix(text, everyPrefix)
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', strings.ContainsRune("*?/,@ -", c):
		case every && (c == '.' || c == 'µ'):
		default:
			return errors.New("it has a character that no expression has")
		}
	}
	return nil
}

func parseEvery(text, duration string) (Expression, error) {
	d, err := time.ParseDuration(duration)
	switch {
	case err != nil:
		return Expression{}, errors.New("@every wants a duration, such as 90s, 15m or 1h30m")
	case d < minEvery || d > maxEvery:
		return Expression{}, errors.New("@every takes one second to one year")
	}
	spec, err := parse(text)
	return Expression{text: text, every: d.Truncate(time.Second), spec: spec}, err
}

var errUnread = errors.New("it cannot be read")

// parse asks the library, which may panic.
func parse(text string) (spec cron.Schedule, err error) {
	defer func() {
		if p := recover(); p != nil {
			spec, err = nil, errUnread
		}
	}()
	if spec, err = cron.ParseStandard(text); err != nil {
		return nil, errUnread // the library's words have the expression in them
	}
	return spec, nil
}

// String is the expression, with single spaces.
func (e Expression) String() string { return e.text }

// ask evaluates the library on a wall clock that is relabelled as UTC, the only
// zone that it gets right. ErrNever, or what it panicked with.
func (e Expression) ask(wall time.Time) (next time.Time, err error) {
	defer func() {
		if p := recover(); p != nil {
			next, err = time.Time{}, fmt.Errorf("evaluate %q: %v", e.text, p)
		}
	}()
	if e.spec == nil {
		return time.Time{}, ErrNever
	}
	if next = e.spec.Next(wall); next.IsZero() {
		return next, ErrNever
	}
	if !next.After(wall) {
		return time.Time{}, fmt.Errorf("evaluate %q: %s is not after %s", e.text, next, wall)
	}
	return next, nil
}
