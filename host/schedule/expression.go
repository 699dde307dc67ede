package schedule

import (
	"errors"
	"fmt"
	"strconv"
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

// descriptors maps names that stand for expressions to whether they follow the wall clock.
var descriptors = map[string]bool{
	"@yearly": true, "@annually": true, "@monthly": true, "@weekly": true, "@daily": true,
	"@midnight": true, "@hourly": false,
}

const everyPrefix = "@every "

// An Expression is a checked cron expression. The zero value never fires.
type Expression struct {
	text  string
	every time.Duration // of @every, else 0
	fixed bool          // follows the wall clock
	spec  cron.Schedule
}

// ErrNever means that an expression has no match within the five years that the library searches.
var ErrNever = errors.New("never fires")

// Parse parses an expression of five fields, or a descriptor. Its errors are sentences that say
// what to change without repeating the input.
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
			return Expression{}, errors.New(
				"there is no such schedule; there are @yearly, @monthly, @weekly, @daily, @hourly and @every")
		}
		e.fixed = wall
	} else {
		parts := strings.Fields(e.text)
		if len(parts) != len(fields) {
			return Expression{}, fmt.Errorf("it has %d fields, not five: minute, hour, day of month, month, day of week",
				len(parts))
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

// characters refuses characters that no expression contains, above all "=", which the library takes
// for a time zone and panics on.
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

// parse calls the library, which may panic.
func parse(text string) (spec cron.Schedule, err error) {
	defer func() {
		if p := recover(); p != nil {
			spec, err = nil, errUnread
		}
	}()
	if spec, err = cron.ParseStandard(text); err != nil {
		return nil, errUnread // the library's message repeats the expression
	}
	return spec, nil
}

// String returns the expression with single spaces.
func (e Expression) String() string { return e.text }

// ask evaluates the library on a wall clock relabelled as UTC, the only zone that it handles
// correctly. It returns ErrNever, or an error for a panic.
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

// A field is one of the five fields of an expression. It is validated before the library sees it,
// since the library accepts steps of any size and empty items, and its errors do not name the
// field.
type field struct {
	name     string
	min, max int
	names    []string // of min, min+1, …
	hint     string
}

var fields = [5]field{
	{name: "minute", max: 59},
	{name: "hour", max: 23},
	{name: "day of month", min: 1, max: 31},
	{name: "month", min: 1, max: 12,
		names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of week", max: 6, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, hint: "; Sunday is 0"},
}

func (f field) check(text string) error {
	for item := range strings.SplitSeq(text, ",") {
		if err := f.item(item); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// item validates a number, a name, a range or a star, with or without a step.
func (f field) item(text string) error {
	values, step, stepped := strings.Cut(text, "/")
	if stepped {
		if n, ok := number(step); !ok || n < 1 || n > f.max-f.min+1 {
			return fmt.Errorf("a step is not from 1 to %d", f.max-f.min+1)
		}
	}
	if values == "*" || values == "?" {
		return nil
	}
	first, last, ranged := strings.Cut(values, "-")
	from, err := f.value(first)
	if err != nil || !ranged {
		return err
	}
	to, err := f.value(last)
	if err == nil && to < from {
		err = errors.New("a range ends before it begins")
	}
	return err
}

func (f field) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	n, ok := number(text)
	switch {
	case text == "":
		return 0, errors.New("a value is missing")
	case !ok && len(f.names) > 0:
		return 0, fmt.Errorf("a value is neither from %d to %d%s, nor a name such as %s", f.min, f.max, f.hint, f.names[0])
	case !ok || n < f.min || n > f.max:
		return 0, fmt.Errorf("a value is not from %d to %d%s", f.min, f.max, f.hint)
	}
	return n, nil
}

// number parses one or two digits, so that no sum overflows.
func number(text string) (int, bool) {
	if len(text) == 0 || len(text) > 2 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// fixed reports whether a minute or hour field lists its values, so that the schedule follows the
// wall clock. "?" equals a star.
func fixed(text string) bool { return !strings.ContainsAny(text, "*?/") }
