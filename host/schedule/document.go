package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A document is a schedule as it is stored, by connection id: what the owner
// said, and everything that has to outlive the host.
type document struct {
	Definition host.ScheduleTerms `json:"definition"`
	// Revision counts what owners changed. The store's own counts ticks too.
	Revision uint64 `json:"revision"`

	// Slot is what comes next and DueAt the same with its jitter, drawn once
	//. Both are zero while the schedule is paused.
	Slot  time.Time `json:"slot,omitzero"`
	DueAt time.Time `json:"due_at,omitzero"`
	// LastSlot was dispatched last.
	//
	// Invariant: Slot is after LastSlot, so no slot is dispatched twice,
	// unless the clock was wrong by more than bogus when LastSlot was noted.
	LastSlot time.Time `json:"last_slot,omitzero"`

	LastStarted    time.Time   `json:"last_started,omitzero"` // of any run of the connection
	LastFinished   time.Time   `json:"last_finished,omitzero"`
	LastSuccessful time.Time   `json:"last_successful,omitzero"`
	LastError      string      `json:"last_error,omitempty"` // code
	Seen           store.RunID `json:"seen,omitempty"`       // the newest run that the above is about, and that is over
	Overlaps       int64       `json:"overlaps,omitempty"`

	// Open is the tick whose run is not over, or waits to be tried again.
	Open   *open  `json:"open,omitempty"`
	Streak streak `json:"streak,omitzero"`
	// Silent is why the last due time was skipped; it is not said again.
	Silent   string    `json:"silent,omitempty"`
	Grant    *disabled `json:"grant,omitempty"`
	Poisoned bool      `json:"poisoned,omitempty"` // evaluating it failed; paused until its owner resumes it

	stored uint64 // the store's revision, 0 when it is not there
}

// An open tick.
type open struct {
	RunID   store.RunID `json:"run_id"` // of the attempt that started last
	Attempt int         `json:"attempt"`
	At      time.Time   `json:"at"` // what the back-off counts from: its slot, or when it was made up for
	CatchUp bool        `json:"catch_up,omitempty"`
	Read    uint64      `json:"-"` // sequence of the run's next unread event
}

// disabled says that a grant ended a run or refused one.
type disabled struct {
	Reason    string `json:"reason"`
	Said      bool   `json:"said,omitempty"`      // the skip record is written
	Restarted bool   `json:"restarted,omitempty"` // the owner or a host start asks to look again
}

// load reads a schedule. *Error with schedule_not_found; errUnreadable when
// nobody can say what it is.
func (s *Scheduler) load(ctx context.Context, id store.ConnectionID) (document, error) {
	d, err := s.d.Store.Document(ctx, store.Schedules, string(id))
	if errors.Is(err, store.ErrNotFound) {
		return document{}, notFound()
	}
	if err != nil {
		return document{}, fmt.Errorf("load schedule of %s: %w", id, err)
	}
	return decode(d)
}

// errUnreadable: a stored schedule is no schedule. It is shown, replaced and
// deleted like any other, and never due.
var errUnreadable = errors.New("the stored schedule cannot be read")

func decode(d store.Document) (document, error) {
	var doc document
	if err := json.Unmarshal(d.Data, &doc); err != nil {
		return document{stored: d.Revision, Poisoned: true}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	doc.stored = d.Revision
	var old struct {
		Definition json.RawMessage `json:"definition"`
	}
	if err := errors.Join(json.Unmarshal(d.Data, &old), readOld(old.Definition, &doc.Definition)); err != nil {
		return document{stored: d.Revision, Poisoned: true}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return doc, nil
}

// readOld reads an object whose members an earlier version of this host named in snake
// case; what has the names of today is left as it was read.
func readOld(raw json.RawMessage, into any) error {
	var members map[string]json.RawMessage
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	renamed := map[string]json.RawMessage{}
	for name, value := range members {
		if words := strings.Split(name, "_"); len(words) > 1 {
			for i, w := range words[1:] {
				words[i+1] = strings.ToUpper(w[:min(1, len(w))]) + w[min(1, len(w)):]
			}
			renamed[strings.Join(words, "")] = value
		}
	}
	if len(renamed) == 0 {
		return nil
	}
	b, err := json.Marshal(renamed)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// write is the change that puts d in the place of what was loaded. It fails with
// *store.ConflictError when that was changed meanwhile.
func (d document) write(id store.ConnectionID) store.Write {
	data, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("encode schedule: %v", err)) // times and numbers; a year beyond 9999
	}
	at := d.stored
	return store.Write{Kind: store.Schedules, ID: string(id), Data: data, If: &at}
}

// attempts bounds how often a change is tried again because of another one.
const attempts = 16

// change makes a change of a schedule that was loaded, together with others,
// until nothing comes between. edit returns what to write beside the schedule;
// errUnchanged ends it without a write.
func (s *Scheduler) change(ctx context.Context, id store.ConnectionID, edit func(*document) ([]store.Write, error)) (document, error) {
	return s.edit(ctx, id, false, edit)
}

// edit is change that also makes a schedule, if create says so.
func (s *Scheduler) edit(ctx context.Context, id store.ConnectionID, create bool, edit func(*document) ([]store.Write, error)) (document, error) {
	for try := 1; ; try++ {
		doc, err := s.load(ctx, id)
		if err != nil && !errors.Is(err, errUnreadable) && !(create && errors.As(err, new(*host.Refusal))) {
			return doc, err
		}
		with, err := edit(&doc)
		if errors.Is(err, errUnchanged) {
			return doc, nil
		}
		if err != nil {
			return doc, err
		}
		err = s.d.Store.Write(ctx, append(with, doc.write(id))...)
		switch {
		case err == nil:
			doc.stored++
			s.plan(id, doc)
			return doc, nil
		case !errors.As(err, new(*store.ConflictError)) || try == attempts:
			return doc, fmt.Errorf("save schedule of %s: %w", id, err)
		}
	}
}

var errUnchanged = errors.New("unchanged")

// due sets the slot and draws its jitter. None is set when the expression has no
// match any more.
func (s *Scheduler) due(d *document, slot time.Time, err error) error {
	d.Slot, d.DueAt = time.Time{}, time.Time{}
	if errors.Is(err, ErrNever) {
		return nil
	}
	if err != nil {
		return err
	}
	d.Slot = slot.UTC()
	d.DueAt = d.Slot
	if j := d.Definition.JitterSeconds; j > 0 {
		d.DueAt = d.Slot.Add(time.Duration(s.d.Rand(j*1000+1)) * time.Millisecond)
	}
	return nil
}

// advance leaves the current slot behind.
func (s *Scheduler) advance(d *document, now time.Time) error {
	if !d.Slot.IsZero() {
		d.LastSlot = d.Slot
	}
	t, err := timetableOf(d.Definition)
	if err != nil {
		return err
	}
	slot, err := t.next(now, d.last(t))
	return s.due(d, slot, err)
}

// begin computes the due time of a schedule that begins now.
func (s *Scheduler) begin(d *document, now time.Time) error {
	if !d.Definition.Enabled {
		d.Slot, d.DueAt = time.Time{}, time.Time{}
		return nil
	}
	t, err := timetableOf(d.Definition)
	if err != nil {
		return err
	}
	last := d.LastStarted
	if t.interval == 0 {
		last = d.LastSlot
	}
	slot, err := t.first(now, last)
	if err = s.due(d, slot, err); t.interval > 0 && slot.Equal(now) {
		d.DueAt = d.Slot // at once
	}
	return err
}

// last is what the next slot follows: an interval counts from the last start too.
func (d *document) last(t timetable) time.Time {
	if t.interval > 0 && d.LastStarted.After(d.LastSlot) {
		return d.LastStarted
	}
	return d.LastSlot
}

// lookBack is how many runs of a connection are looked through for what a
// schedule has not seen: those that others started.
const lookBack = 100

// observe brings a document up to date with the runs of its connection, whoever
// started them: an interval counts from the last start, a success ends a
// streak. It writes nothing.
func (s *Scheduler) observe(ctx context.Context, id store.ConnectionID, d *document) error {
	runs, err := s.d.Store.Runs(ctx, id, "", lookBack)
	if err != nil {
		return fmt.Errorf("list runs of %s: %w", id, err)
	}
	runs = slices.DeleteFunc(runs, func(r store.Run) bool { return r.ID <= d.Seen })
	active := false
	for _, r := range slices.Backward(runs) { // oldest first
		if r.StartedAt.After(d.LastStarted) {
			d.LastStarted = r.StartedAt
		}
		if r.FinishedAt == nil || r.Status == "active" {
			active = true
			continue
		}
		d.finished(r)
		if !active {
			d.Seen = r.ID
		}
	}
	return nil
}

// finished takes up how a run of the connection went.
func (d *document) finished(r store.Run) {
	at := *r.FinishedAt
	if at.Before(d.LastFinished) {
		return
	}
	d.LastFinished, d.LastError = at, ""
	switch r.Status {
	case "succeeded":
		d.LastSuccessful = at
		if d.Streak.Count > 0 && !at.Before(d.Streak.At) {
			d.Streak = streak{}
		}
	case "failed":
		if res, err := resultOf(r); err == nil {
			d.LastError = res.reason()
		}
	}
}

// active is the run that holds a connection, "" for none.
func (s *Scheduler) active(ctx context.Context, id store.ConnectionID) (store.RunID, error) {
	leases, err := s.d.Store.Leases(ctx)
	if err != nil {
		return "", fmt.Errorf("list active runs: %w", err)
	}
	for _, l := range leases {
		if l.ConnectionID == id {
			return l.RunID, nil
		}
	}
	return "", nil
}
