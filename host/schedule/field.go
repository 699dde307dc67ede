package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A field is one of the five of a cron expression. It is checked here before
// the library sees it, since that takes steps of any size and empty items,
// and since its errors name no field.
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
	{name: "month", min: 1, max: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
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

// item is a number, a name, a range or a star, with or without a step.
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

// number reads one or two digits, so that no sum of them overflows.
func number(text string) (int, bool) {
	if len(text) == 0 || len(text) > 2 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// fixed reports whether a minute or hour field names its values, so that its
// schedule follows the wall clock. "?" is another star.
func fixed(text string) bool { return !strings.ContainsAny(text, "*?/") }
