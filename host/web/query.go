package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
)

// A Query parses the query of a URL and collects errors. Results are copies; a missing parameter
// gives the zero value or the default.
type Query struct {
	c      *fiber.Ctx
	fields []Field
}

// QueryOf begins to parse. Call Err at the end.
func QueryOf(c *fiber.Ctx) *Query { return &Query{c: c} }

// Err returns 400 validation_error with every invalid parameter, or nil. It names parameters and
// rules, not values.
func (q *Query) Err() error {
	if q.fields == nil {
		return nil
	}
	return Invalid(q.fields...)
}

func (q *Query) wrong(name, rule string, args ...any) {
	q.fields = append(q.fields, Field{"query." + name, fmt.Sprintf(rule, args...)})
}

// Only refuses parameters that are not in names. The message suggests similar names;
// details.unknown lists the unknown ones, as for members of a body.
func (q *Query) Only(names []string) error {
	var unknown []string
	rule := ""
	for k := range q.c.Context().QueryArgs().All() {
		name := string(k)
		if slices.Contains(names, name) || slices.Contains(unknown, abi.Cut(abi.Clean(name), maxUnknown)) ||
			len(unknown) == maxUnknown {
			continue
		}
		if rule == "" {
			rule = abi.Suggest(name, names)
		}
		unknown = append(unknown, abi.Cut(abi.Clean(name), maxUnknown))
	}
	if unknown == nil {
		return nil
	}
	p := Invalid(Field{"query", "parameters that this has: " + rule})
	p.Message = "The query has a parameter that this does not take; " + rule
	return p.With("unknown", unknown)
}

// maxUnknown bounds what a refusal repeats of unknown parameters: their number, and the bytes of
// each.
const maxUnknown = 64

// Has reports whether a parameter is there.
func (q *Query) Has(name string) bool { return q.c.Context().QueryArgs().Has(name) }

// Text returns a parameter of at most maxBytes bytes.
func (q *Query) Text(name string, maxBytes int) string {
	v := string(q.c.Context().QueryArgs().Peek(name))
	if len(v) > maxBytes || !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
		q.wrong(name, "at most %d bytes of UTF-8", maxBytes)
		return ""
	}
	return v
}

// Int returns a whole number from least to most.
func (q *Query) Int(name string, missing, least, most int64) int64 {
	if !q.Has(name) {
		return missing
	}
	n, err := strconv.ParseInt(q.Text(name, 20), 10, 64)
	if err != nil || n < least || n > most {
		q.wrong(name, "%d to %d", least, most)
		return missing
	}
	return n
}

// Bool returns true or false.
func (q *Query) Bool(name string, missing bool) bool {
	switch v := q.Text(name, 5); {
	case !q.Has(name):
		return missing
	case v == "true" || v == "false":
		return v == "true"
	}
	q.wrong(name, "true or false")
	return missing
}

// Time returns a time in RFC 3339, or the zero time if it is missing.
func (q *Query) Time(name string) time.Time {
	if !q.Has(name) {
		return time.Time{}
	}
	t, ok := abi.Instant(q.Text(name, 40))
	if !ok {
		q.wrong(name, "a time of RFC 3339")
	}
	return t
}

// OneOf returns one of words, or missing if there is none.
func (q *Query) OneOf(name, missing string, words ...string) string {
	if !q.Has(name) {
		return missing
	}
	v := q.Text(name, 64)
	if !slices.Contains(words, v) {
		q.wrong(name, "one of %s", strings.Join(words, ", "))
		return missing
	}
	return v
}

// List returns the values of a comma-separated parameter, at most 100.
func (q *Query) List(name string) []string {
	v := q.Text(name, 4096)
	if v == "" {
		return nil
	}
	list := strings.Split(v, ",")
	if len(list) > 100 {
		q.wrong(name, "at most 100 values")
		return nil
	}
	return list
}

func parseUint(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }
