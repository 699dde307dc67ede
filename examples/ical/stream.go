package main

import (
	"slices"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A stream emits the records of one stream of the scope, and only what the
// scope admits of them: a record outside would end the run (R47–R49).
type stream struct {
	run    *guest.Run
	name   string
	record *guest.Record

	fields       map[string]bool // nil: all
	resources    map[string]bool // nil: all
	since, until int64           // µs since 1970
	ranged       bool
}

// openStream returns a stream, or nil when it is not in scope.
func openStream(run *guest.Run, name string) *stream {
	entry, ok := run.Stream(name)
	if !ok {
		return nil
	}
	s := &stream{run: run, name: name, record: run.Record(name), fields: setOf(entry.Fields)}
	if len(entry.Resources) > 0 {
		s.resources = setOf(entry.Resources)
	}
	if r := entry.TimeRange; r != nil {
		s.ranged = true
		s.since, s.until = bound(r.Since, -1<<63), bound(r.Until, 1<<63-1)
	}
	return s
}

func setOf(items []string) map[string]bool {
	if items == nil {
		return nil
	}
	set := make(map[string]bool, len(items))
	for _, i := range items {
		set[i] = true
	}
	return set
}

// bound reads a bound of a time range. The host has made sure that it can.
func bound(text string, open int64) int64 {
	if t, ok := abi.ParseTime(text); ok {
		return t
	}
	return open
}

// admits reports whether the scope's resources admit a record with one of these
// names: its key, and its resource field if the stream has one.
func (s *stream) admits(names ...string) bool {
	return s.resources == nil || slices.ContainsFunc(names, func(n string) bool { return s.resources[n] })
}

// admitsTime reports whether the scope's time range admits a record of that
// time, "" being a record without one.
func (s *stream) admitsTime(text string) bool {
	if !s.ranged {
		return true
	}
	t, ok := abi.ParseTime(text)
	return ok && t >= s.since && t < s.until
}

// wants reports whether the scope admits a member.
func (s *stream) wants(field string) bool { return s.fields == nil || s.fields[field] }

// shape is what of the scope decides which records there are and what is in
// them.
func (s *stream) shape() any {
	entry, _ := s.run.Stream(s.name)
	return []any{entry.Fields, entry.Resources, entry.TimeRange}
}

// A row is one record on its way out.
type row struct{ *stream }

func (s *stream) row() row {
	s.record.Reset()
	return row{s}
}

func (r row) text(field, v string) {
	if r.wants(field) {
		r.record.String(field, v)
	}
}

// textOrNull writes null for "".
func (r row) textOrNull(field, v string) {
	if !r.wants(field) {
		return
	}
	if v == "" {
		r.record.Null(field)
		return
	}
	r.record.String(field, v)
}

func (r row) texts(field string, v []string) {
	if r.wants(field) {
		r.record.Strings(field, v)
	}
}

func (r row) flag(field string, v bool) {
	if r.wants(field) {
		r.record.Bool(field, v)
	}
}

func (r row) count(field string, v int) {
	if r.wants(field) {
		r.record.Int(field, int64(v))
	}
}

func (r row) null(field string) {
	if r.wants(field) {
		r.record.Null(field)
	}
}

func (r row) any(field string, v any) {
	if r.wants(field) {
		r.record.Any(field, v)
	}
}
