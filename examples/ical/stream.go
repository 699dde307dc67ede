package main

import (
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A stream emits the records of one stream of the scope, and only what the
// scope admits of them.
type stream struct {
	*guest.Filter
	run    *guest.Run
	name   string
	record *guest.Record
}

// openStream returns a stream, or nil when it is not in scope.
func openStream(run *guest.Run, name string) *stream {
	f, ok := run.Filter(name)
	if !ok {
		return nil
	}
	return &stream{Filter: f, run: run, name: name, record: run.Record(name)}
}

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
	if r.Wants(field) {
		r.record.String(field, v)
	}
}

// textOrNull writes null for "".
func (r row) textOrNull(field, v string) {
	if !r.Wants(field) {
		return
	}
	if v == "" {
		r.record.Null(field)
		return
	}
	r.record.String(field, v)
}

func (r row) texts(field string, v []string) {
	if r.Wants(field) {
		r.record.Strings(field, v)
	}
}

func (r row) flag(field string, v bool) {
	if r.Wants(field) {
		r.record.Bool(field, v)
	}
}

func (r row) count(field string, v int) {
	if r.Wants(field) {
		r.record.Int(field, int64(v))
	}
}

func (r row) null(field string) {
	if r.Wants(field) {
		r.record.Null(field)
	}
}

func (r row) any(field string, v any) {
	if r.Wants(field) {
		r.record.Any(field, v)
	}
}
