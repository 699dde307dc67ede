package main

import (
	"encoding/json"
	"errors"
	"strings"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A stream is one of the scope, with the cursor of the last run.
type stream struct {
	*guest.Filter
	run  *guest.Run
	name string
	mark marks
	last cursor
	now  map[string]*ledger // of a stream of collections
}

// openStream returns a stream, or nil when it is not in scope.
func openStream(run *guest.Run, name string, mark marks) (*stream, error) {
	f, ok := run.Filter(name)
	if !ok {
		return nil, nil
	}
	s := &stream{Filter: f, run: run, name: name, mark: mark, now: map[string]*ledger{}}
	if ok, err := run.State(name, &s.last); err != nil || !ok {
		s.last = cursor{} // none, or of another version
	}
	for k, l := range s.last.Ledgers {
		if l == nil {
			delete(s.last.Ledgers, k)
			continue
		}
		l.unpack()
	}
	return s, nil
}

// edition changes when this connector makes something else of what it collected: then
// everything is read anew.
const edition = 2

// shape is what of the scope decides which records there are and what is in
// them.
func (s *stream) shape() string {
	entry, _ := s.run.Stream(s.name)
	b, err := json.Marshal([]any{entry.Fields, entry.Resources, entry.TimeRange, edition})
	if err != nil {
		return ""
	}
	d := keyOf(string(b))
	return d.String()
}

// current reports whether the last run had the same scope.
func (s *stream) current() bool { return s.run.Incremental() && s.last.Shape == s.shape() }

// mayHave reports whether the scope may admit anything of a collection: its resources
// are paths of collections, or keys of records, which may be in any collection.
func (s *stream) mayHave(path string) bool {
	entry, _ := s.run.Stream(s.name)
	if len(entry.Resources) == 0 {
		return true
	}
	for _, r := range entry.Resources {
		if r == path || !strings.HasPrefix(r, "/") {
			return true
		}
	}
	return false
}

// A record is emitted without the members that the scope leaves out.
type record map[string]any

// put emits a record. A record that is too large is reported as a fault of its object.
func (s *stream) put(k key, r record) error {
	for name := range r {
		if !s.Wants(name) {
			delete(r, name)
		}
	}
	err := s.run.Emit(s.name, k.String(), r)
	if errors.Is(err, guest.ErrTooLarge) {
		return errTooLarge
	}
	return err
}

var errTooLarge = &badObject{errors.New("it makes a record of more than 1 MiB")}

// A badObject is one that cannot be read.
type badObject struct{ err error }

func (b *badObject) Error() string { return b.err.Error() }
func (b *badObject) Unwrap() error { return b.err }

// text is null for "".
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}
