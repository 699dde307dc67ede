package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A stream emits the records of one stream of the scope and keeps its cursor.
type stream struct {
	*guest.Filter
	run   *guest.Run
	name  string
	floor time.Time // nothing before it is in the time range
	cursor
}

// A cursor is what a run leaves for the next.
type cursor struct {
	Source string `json:"source"` // digest of whose inventory this is
	Shape  string `json:"shape"`  // digest of the scope; with another one, ETags and times say nothing

	ETag         string          `json:"etag,omitempty"`         // of a list that has one page
	IDs          []int64         `json:"ids,omitempty"`          // records of a full inventory
	Repositories []repository    `json:"repositories,omitempty"` // those the ETags stand for
	Marks        map[int64]*mark `json:"marks,omitempty"`        // by id of the repository
}

// A mark is how far a repository is collected.
type mark struct {
	Name  string    `json:"name"` // digest: a renamed repository is collected anew
	At    time.Time `json:"at,omitzero"`
	ETag  string    `json:"etag,omitempty"`
	Asked time.Time `json:"asked,omitzero"` // what the ETag's request asked for
	IDs   []int64   `json:"ids,omitempty"`  // as in a cursor
}

// maxCursor leaves a little of the host's 256 KiB.
const maxCursor = 240 << 10

// openStream returns a stream, nil when it is not in scope.
func openStream(run *guest.Run, name string, set settings) (*stream, error) {
	f, ok := run.Filter(name)
	if !ok {
		return nil, nil
	}
	s := &stream{Filter: f, run: run, name: name}
	entry, _ := run.Stream(name)
	if entry.TimeRange != nil {
		if at, ok := abi.ParseTime(entry.TimeRange.Since); ok {
			s.floor = time.UnixMicro(at).UTC()
		}
	}
	known, err := run.State(name, &s.cursor)
	if err != nil {
		return nil, fmt.Errorf("read the cursor of %s: %w", name, err)
	}
	source := digest(set.api, set.user, len(set.repositories) > 0)
	shape := digest(entry.Fields, entry.TimeRange, entry.Resources)
	switch {
	case !known || s.Source != source:
		s.cursor = cursor{}
	case s.Shape != shape || !run.Incremental():
		s.ETag, s.Repositories = "", nil
		for _, m := range s.Marks {
			*m = mark{IDs: m.IDs}
		}
	}
	s.Source, s.Shape = source, shape
	if s.Marks == nil {
		s.Marks = map[int64]*mark{}
	}
	return s, nil
}

func digest(parts ...any) string {
	b, err := json.Marshal(parts)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// mark returns the mark of a repository.
func (s *stream) mark(r repository) *mark {
	m := s.Marks[r.ID]
	if m == nil {
		m = &mark{}
		s.Marks[r.ID] = m
	}
	if name := digest(r.Name); m.Name != name {
		*m = mark{Name: name, IDs: m.IDs}
	}
	return m
}

// put emits a record. One that is too large for the host does not affect the others.
func (s *stream) put(id int64, v any) error {
	err := s.run.Emit(s.name, key(id), v)
	if !errors.Is(err, guest.ErrTooLarge) {
		return err
	}
	never := false
	return s.run.Gap(guest.Gap{Stream: s.name, RecordKey: key(id), Reason: "record_too_large", Retryable: &never})
}

func key(id int64) string { return strconv.FormatInt(id, 10) }

// partly remembers what a list brought that then failed: it is not known what is
// gone, but what was emitted may be gone by the next run, which must not be told
// that nothing changed since the list before.
func partly(etag *string, known *[]int64, emitted []int64) {
	if len(emitted) > 0 {
		*etag, *known = "", union(*known, emitted)
	}
}

func union(a, b []int64) []int64 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// settle compares a full inventory with the last one: what is gone is deleted,
// if the scope lets a tombstone of it pass. It returns what to remember.
func (s *stream) settle(known, emitted []int64, there map[int64]bool) ([]int64, error) {
	var keep []int64
	for _, id := range known {
		if there[id] || !s.Admits(key(id)) {
			keep = append(keep, id)
		} else if err := s.run.Delete(s.name, key(id)); err != nil {
			return nil, err
		}
	}
	return union(keep, emitted), nil
}

// checkpoint stages the cursor. When it is too large, it drops the ETags first, and
// then the largest inventories.
func (s *stream) checkpoint() error {
	b, err := json.Marshal(s.cursor)
	if err == nil && len(b) > maxCursor {
		b, err = s.withoutETags()
	}
	cut := false
	for ; err == nil && len(b) > maxCursor; b, err = json.Marshal(s.cursor) {
		cut = true
		largest := &s.IDs
		for _, m := range s.Marks {
			if len(m.IDs) > len(*largest) {
				largest = &m.IDs
			}
		}
		if len(*largest) == 0 {
			return fmt.Errorf("the cursor of %s has %d bytes", s.name, len(b))
		}
		*largest = (*largest)[(len(*largest)+9)/10:] // the oldest are the least likely to go
	}
	if err != nil {
		return err
	}
	if cut {
		err := s.run.Skip(guest.Skip{Stream: s.name, Reason: "too_many_known",
			Message: "There are too many to remember: deletions of the oldest will not be noticed."})
		if err != nil {
			return err
		}
	}
	return s.run.Checkpoint(s.name, json.RawMessage(b))
}

func (s *stream) withoutETags() ([]byte, error) {
	s.ETag, s.Repositories = "", nil
	for _, m := range s.Marks {
		m.ETag, m.Asked = "", time.Time{}
	}
	return json.Marshal(s.cursor)
}

// each makes a step of what collects one repository's part of a stream.
func (c *collection) each(do func(ctx context.Context, s *stream, r repository,
	m *mark) error) func(context.Context, *stream) error {
	return func(ctx context.Context, s *stream) error {
		for i, r := range c.repositories {
			if !s.Admits(r.Name) {
				continue
			}
			if err := c.run.Progress("Collecting "+r.Name, guest.OnStream(s.name), guest.Count(i),
				guest.Total(len(c.repositories))); err != nil {
				return err
			}
			err := do(ctx, s, r, s.mark(r))
			if errors.Is(err, errExhausted) {
				return errors.Join(c.later(s.name, i), s.checkpoint())
			}
			if err == nil {
				c.answered++
			} else if err = c.note(s.name, r.Name, err); err != nil {
				return err
			}
		}
		if err := c.forget(s); err != nil {
			return err
		}
		return s.checkpoint()
	}
}

// later reports that the next run continues after n repositories.
func (c *collection) later(stream string, n int) error {
	done := int64(n)
	return c.run.Skip(guest.Skip{Stream: stream, Reason: "request_limit",
		Message:      "The next run goes on where this one stops.",
		RecoveryHint: &guest.Hint{Action: guest.RetryByRuntime},
		Continuation: &guest.Continuation{Boundary: "repositories", SliceEnd: done, Considered: done, Covered: done}})
}

// forget drops the marks of repositories that are gone, and deletes what is
// known of theirs.
func (c *collection) forget(s *stream) error {
	if !c.complete {
		return nil
	}
	for id, m := range s.Marks {
		if slices.ContainsFunc(c.repositories, func(r repository) bool { return r.ID == id }) {
			continue
		}
		var err error
		if len(c.set.repositories) > 0 { // it may well be there, the settings name it no more
			m.IDs = nil
		} else if m.IDs, err = s.settle(m.IDs, nil, nil); err != nil {
			return err
		}
		if len(m.IDs) == 0 {
			delete(s.Marks, id)
		}
	}
	return nil
}
