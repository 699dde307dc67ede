package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Commit is one atomic change by one run: facts and the events that announce them. Only
// Lease is required. A store accepts at least a flush of records, the cursors of all
// streams and a thousand gaps or events at once.
type Commit struct {
	// Lease is checked first: ErrFenced, ErrRunTerminal.
	Lease Lease
	Grant GrantID // namespace of Staged, Advance and Gaps

	Batches []*Batch
	// Files are contents that records of Batches hold; the store drops those that it
	// already has. They belong to the store from Submit on. A held content that is neither
	// here nor stored refuses the commit: *SinkError with unknown_file.
	Files   []StagedFile
	Staged  []State     // cursors accepted during the run; dropped when it ends
	Advance []State     // cursors that become the connection's state, in order
	Gaps    []DetailGap // created or replaced
	// Ask stores a pending question; Answered erases one.
	Ask      *Interaction
	Answered string
	// Journal holds pieces of the run's journal, sealed by the run (Leases.Journal).
	Journal []JournalPiece
	// ConsumeGrant marks the connection's single_use grant consumed.
	ConsumeGrant bool
	// Run replaces the run record. With End it is final: the run's lease and everything
	// pending are deleted, and no commit follows.
	Run *Run
	End bool

	// Events are appended in order after the run's last event. With End the last of them is
	// the terminal event.
	Events []Event
}

// Permits, for drivers, checks a commit under the current lease against the connection's
// grant, nil for none, and the test hook. An unusable grant refuses collected data and
// success: *SinkError. failState is a stream whose cursor is to be refused, or "":
// *StateError.
func (c *Commit) Permits(g *Grant, at time.Time, failState Stream) error {
	for _, st := range c.Advance {
		if st.Stream == failState && st.Stream != "" {
			return &StateError{Stream: st.Stream, Err: errors.New("refused by the test hook")}
		}
	}
	succeeds := c.End && c.Run != nil && c.Run.Status == abi.Succeeded
	if !succeeds && len(c.Batches) == 0 && len(c.Advance) == 0 || g == nil || g.ID != c.Grant {
		return nil
	}
	if code := g.Fault(at); code != "" {
		return &SinkError{Code: code, Err: fmt.Errorf("grant %s of connection %s", g.ID, c.Lease.ConnectionID)}
	}
	return nil
}

// Consume, for drivers, marks the connection's grant consumed, and reports whether it did.
// It does not if another grant has replaced it.
func (c *Commit) Consume(conn *Connection, at time.Time) bool {
	g := conn.Grant
	if g == nil || g.ID != c.Grant || g.AccessMode != "single_use" {
		return false
	}
	g.Status, conn.UpdatedAt = "consumed", at
	return true
}

// EncodeEvent, for drivers, returns the stored form of the commit's i-th event.
func (c *Commit) EncodeEvent(i int, sequence uint64, at time.Time) ([]byte, error) {
	e := c.Events[i]
	e.Sequence, e.RecordedAt, e.CausationID = sequence, at, ""
	if i > 0 {
		e.CausationID = c.Events[0].ID
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.Type, err)
	}
	return text, nil
}

// A JournalPiece is a part of a run's journal. The run numbers pieces, below 2^63; a piece
// replaces one with the same number. Data has at most MaxJournalPiece bytes. The end of the
// run deletes all pieces.
type JournalPiece struct {
	N    uint64
	Data []byte
}

// MaxJournalPiece bounds a piece of a journal, in bytes.
const MaxJournalPiece = 512 << 10

// A Receipt reports the result of a submitted commit. Commits of one run are applied in the
// order of submission; if one fails, all later ones fail with the same error, so nothing
// becomes durable out of order.
type Receipt struct {
	done chan struct{}
	ack  Ack
	err  error
}

// An Ack describes a durable commit.
type Ack struct {
	// FirstSequence is the sequence of the commit's first event.
	FirstSequence uint64
	RecordedAt    time.Time
	// Changed and Unchanged count the commit's records: those with a new version, and those
	// already stored with equal content.
	Changed, Unchanged int
}

// NewReceipt, for drivers, returns a receipt; settle must be called exactly once.
func NewReceipt() (r *Receipt, settle func(Ack, error)) {
	r = &Receipt{done: make(chan struct{})}
	return r, func(a Ack, err error) {
		r.ack, r.err = a, err
		close(r.done)
	}
}

// Done is closed when the commit is durable or has failed.
func (r *Receipt) Done() <-chan struct{} { return r.done }

// Result returns the outcome; it blocks until Done.
func (r *Receipt) Result() (Ack, error) {
	<-r.done
	return r.ack, r.err
}
