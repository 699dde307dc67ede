package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A document is a stored schedule, by connection id: the owner's terms, and all state that has to
// outlive the host.
type document struct {
	Definition host.ScheduleTerms `json:"definition"`
	// Revision counts changes by owners. The store's own revision counts ticks too.
	Revision uint64 `json:"revision"`

	// Slot is the next slot, and DueAt the same with its jitter, drawn once. Both are zero while
	// the schedule is paused.
	Slot  time.Time `json:"slot,omitzero"`
	DueAt time.Time `json:"due_at,omitzero"`
	// LastSlot is the slot dispatched last.
	//
	// Invariant: Slot is after LastSlot, so no slot is dispatched twice, unless the clock was wrong
	// by more than bogus when LastSlot was set.
	LastSlot time.Time `json:"last_slot,omitzero"`

	LastStarted    time.Time   `json:"last_started,omitzero"` // of any run of the connection
	LastFinished   time.Time   `json:"last_finished,omitzero"`
	LastSuccessful time.Time   `json:"last_successful,omitzero"`
	LastError      string      `json:"last_error,omitempty"` // its code
	Seen           store.RunID `json:"seen,omitempty"`       // newest finished run that is included above
	Overlaps       int64       `json:"overlaps,omitempty"`

	// Open is the tick whose run is not over or waits to be retried.
	Open   *openTick `json:"open,omitempty"`
	Streak streak    `json:"streak,omitzero"`
	// Silent is the cause of the last skip, which is not recorded again.
	Silent   string      `json:"silent,omitempty"`
	Grant    *grantFault `json:"grant,omitempty"`
	Poisoned bool        `json:"poisoned,omitempty"` // evaluating it failed; paused until its owner resumes it

	stored uint64 // the store's revision; 0 if not stored
}

// An openTick is a tick whose run is not over.
type openTick struct {
	RunID   store.RunID `json:"run_id"` // of the latest attempt
	Attempt int         `json:"attempt"`
	At      time.Time   `json:"at"` // base of the back-off: its slot, or the time of catching up
	CatchUp bool        `json:"catch_up,omitempty"`
	Host    string      `json:"host,omitempty"` // the host that follows it; see Hosts.Self
	Read    uint64      `json:"-"`              // sequence of the run's next unread event
}

// A grantFault records that a grant ended a run or refused one.
type grantFault struct {
	Reason    string `json:"reason"`
	Said      bool   `json:"said,omitempty"`      // the skip record is written
	Restarted bool   `json:"restarted,omitempty"` // the owner or a host start asks to check again
}

// errUnreadable means that the stored document is not a valid schedule. It can be shown, replaced
// and deleted like any other, and is never due.
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

// readOld reads an object whose members an earlier version named in snake case. Members with
// today's names are unchanged.
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

// write returns the write that replaces the loaded document by d. It fails with
// *store.ConflictError if the document was changed meanwhile.
func (d document) write(id store.ConnectionID) store.Write {
	data, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("encode schedule: %v", err)) // times and numbers; a year beyond 9999
	}
	at := d.stored
	return store.Write{Kind: store.Schedules, ID: string(id), Data: data, If: &at}
}

// last returns the instant from which the next slot follows: the last slot or, for an interval, the
// last start if that was later.
func (d *document) last(t timetable) time.Time {
	if t.interval > 0 && d.LastStarted.After(d.LastSlot) {
		return d.LastStarted
	}
	return d.LastSlot
}

// finished records how a run of the connection ended.
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
