package main

import (
	"slices"
	"time"
)

// A grant is a stream's entry in the scope: what may be collected of it.
type grant struct {
	Name      string   `json:"name"`
	Resources []string `json:"resources"`
	Fields    []string `json:"fields"`
	TimeRange *struct {
		Since string `json:"since"`
		Until string `json:"until"`
	} `json:"time_range"`
}

// admits reports whether a row lies inside the grant. A row without a
// date is outside of every time range.
func (g grant) admits(key string, date time.Time, dated bool) bool {
	if len(g.Resources) > 0 && !slices.Contains(g.Resources, key) {
		return false
	}
	if g.TimeRange == nil {
		return true
	}
	if !dated {
		return false
	}
	if since, ok := bound(g.TimeRange.Since); ok && date.Before(since) {
		return false
	}
	until, ok := bound(g.TimeRange.Until)
	return !ok || date.Before(until)
}

// bound reads one end of a time range: an RFC 3339 time, or a date or local time,
// which is taken as UTC and may leave out its smaller parts.
func bound(s string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly,
		"2006-01", "2006"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// keep leaves out the members that the grant does not name.
func (g grant) keep(data map[string]any) map[string]any {
	if g.Fields == nil {
		return data
	}
	for name := range data {
		if !slices.Contains(g.Fields, name) {
			delete(data, name)
		}
	}
	return data
}
