package main

import (
	"encoding/json"
	"slices"

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
// them. A cursor is good for one shape.
func (s *stream) shape() any {
	if s == nil {
		return nil
	}
	entry, _ := s.run.Stream(s.name)
	return map[string]any{"fields": entry.Fields, "resources": entry.Resources, "time_range": entry.TimeRange}
}

// forget deletes the records of the names that the last run knew and that are
// gone, and remembers those there are now.
func (s *stream) forget(names []string) error {
	var last nameCursor
	if known, err := s.run.State(s.name, &last); err != nil || !known {
		last = nameCursor{} // a cursor of another version: nothing to compare with
	}
	slices.Sort(names)
	for _, name := range last.names() {
		if _, still := slices.BinarySearch(names, name); still || !s.Admits(name) {
			continue
		}
		if err := s.run.Delete(s.name, name); err != nil {
			return err
		}
	}
	cursor, whole := newNameCursor(names)
	if !whole {
		err := s.run.Skip(guest.Skip{Stream: s.name, Reason: "too_many_refs",
			Message: "There are too many names for one cursor; deletions of the last ones will not be noticed."})
		if err != nil {
			return err
		}
	}
	return s.run.Checkpoint(s.name, cursor)
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

// count writes null for a negative number.
func (r row) count(field string, v int) {
	if !r.Wants(field) {
		return
	}
	if v < 0 {
		r.record.Null(field)
		return
	}
	r.record.Int(field, int64(v))
}

func (r row) emit(key string) error { return r.record.Emit(key) }

// shapeOf is the digest of everything that decides what a run emits.
func shapeOf(parts ...any) string {
	b, err := json.Marshal(parts)
	if err != nil {
		return ""
	}
	return digest(string(b))[:16]
}
